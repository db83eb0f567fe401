"""What numba keeps on disk: sealed, of the user alone, and compiled again where it was damaged."""

import os
import pickle
import warnings

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base import build_cache
from tinygraph.base.errors import ArgumentError, PlanWarning
from tinygraph.plan.fast import elementwise_chain, jit, kept_loops
from tinygraph.plan.fast.kept_loops import SEAL

pytestmark = pytest.mark.skipif(
    not jit.installed(), reason="numba is missing: pip install -e '.[fast]'"
)
# The two files that numba keeps of a loop.
KINDS = [
    (suffix, how) for suffix in (".nbi", ".nbc") for how in ("empty", "cut", "rubbish", "one byte")
]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    build_cache.private_folder.cache_clear()
    yield tmp_path / "cache" / "numba"
    build_cache.private_folder.cache_clear()


def doubled(x, y):
    for i in range(len(y)):
        y[i] = 2 * x[i]


def machine_code():
    """The loop as another process gets it: what this one has compiled is forgotten."""
    made = jit.compiled.__wrapped__(doubled, "x1 =x1", np.float32)
    y = np.zeros(3, np.float32)
    made(np.float32([1, 2, 3]), y)
    np.testing.assert_array_equal(y, [2, 4, 6])
    return sum(made.stats.cache_hits.values())


def damage(path, how):
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[:half],
            "rubbish": b"\x55" * len(content),
            "one byte": content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :],
        }[how]
    )


def test_a_loop_is_kept_and_found(own_folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (machine_code(), machine_code()) == (0, 1)
    (place,) = own_folder.iterdir()
    assert sorted(p.suffix for p in place.rglob("*") if p.is_file()) == ["", ".nbc", ".nbi"]
    assert all(p.stat().st_mode & 0o22 == 0 for p in (own_folder, *own_folder.rglob("*")))


@pytest.mark.parametrize(("suffix", "how"), KINDS)
def test_a_damaged_file_is_compiled_again_once(own_folder, suffix, how):
    machine_code()
    (path,) = own_folder.rglob(f"*{suffix}")
    damage(path, how)
    with pytest.warns(RuntimeWarning, match="was damaged, and is built again"):
        assert machine_code() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert machine_code() == 1


def test_a_plan_is_fast_again(own_folder, monkeypatch):
    """As a user has it: compile(fast=True) in a process after the damage."""
    monkeypatch.setattr(elementwise_chain, "compiled", jit.compiled.__wrapped__)
    x = np.ones(1 << 20, np.float32)

    def run():
        elementwise_chain.kernel.cache_clear()
        step = tg.compile(lambda x: tg.exp(x) * 2 + 1, fast=True)
        np.testing.assert_allclose(step(x).numpy(), 2 * np.e + 1, rtol=1e-6)
        assert "compiled by numba" in step.explain()

    run()
    for path in own_folder.rglob("*.nbi"):
        path.write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="was damaged"):
        run()


class Code:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_of_another_user_is_not_loaded(own_folder, tmp_path, monkeypatch):
    machine_code()
    (index,) = own_folder.rglob("*.nbi")
    index.write_bytes(pickle.dumps(Code(tmp_path / "ran")))
    index.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="is not loaded: .*may be written by others"):
        assert machine_code() == 0
    assert not (tmp_path / "ran").exists() and index.exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_numbas_own_variable_is_looked_at_likewise(tmp_path, monkeypatch, mode):
    import numba

    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(place))
    with pytest.warns(RuntimeWarning, match="Way out: a folder of your own in NUMBA_CACHE_DIR"):
        machine_code()
    assert not list(place.iterdir())
    place.chmod(0o700)
    assert (machine_code(), machine_code()) == (0, 1) and list(place.iterdir())
    assert str(place) == numba.config.CACHE_DIR


def test_what_numba_cannot_read_though_it_is_whole_is_compiled_again(own_folder):
    """Left by another version, which has sealed another kind of file."""
    machine_code()
    (index,) = own_folder.rglob("*.nbi")
    index.write_bytes(b"another kind")
    place = index.parents[1]
    (place / SEAL).write_bytes(kept_loops._digest(place))
    with pytest.warns(RuntimeWarning, match="cannot be loaded .*, and is built again"):
        assert machine_code() == 0
    assert machine_code() == 1


def test_a_process_that_was_killed_leaves_no_seal_and_no_warning(own_folder):
    machine_code()
    (seal,) = own_folder.rglob(SEAL)
    seal.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (machine_code(), machine_code()) == (0, 1)


def test_advice_where_numba_is_there_and_cannot_compile(monkeypatch):
    """Nothing that is installed is to be installed."""

    def fails(*given):
        raise ValueError("no such instruction")

    monkeypatch.setattr(elementwise_chain, "kernel", fails)
    x = np.ones(1 << 21, np.float32)
    with pytest.raises(ArgumentError, match=r"no such instruction\. Way out: fast=None"):
        tg.compile(lambda x: tg.exp(x) * 2 + 1, fast=True)(x)
    with pytest.warns(PlanWarning, match="no such instruction"):  # the advice works
        tg.compile(lambda x: tg.exp(x) * 2 + 1, fast=None)(x)
