"""When a plan has bodies that numba compiles: where it must, where it may, and what is kept."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import F, images, small_network
from tests.plan.test_compile import assert_same, trained
from tinygraph import nn
from tinygraph.base.build_cache import folder
from tinygraph.base.errors import ArgumentError, PlanWarning
from tinygraph.plan.fast import jit

needs_numba = pytest.mark.skipif(
    not jit.installed(), reason="numba is missing: pip install -e '.[fast]'"
)
MANY = 20000  # images whose values are worth cutting into tiles


def three_convolutions():
    """One with ReLU and pooling on one channel, one alone, one with ReLU and pooling."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 3, 1),
        nn.ReLU(),
        nn.Conv2d(3, 3, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


def test_without_numba_it_is_an_error_where_it_must_be_used(monkeypatch):
    monkeypatch.setattr(jit, "why_not", lambda: "No module named 'numba'")
    step = tg.compile(lambda x: tg.relu(x), fast=True)
    with pytest.raises(ArgumentError, match=r"No module named 'numba'.*'\.\[fast\]'"):
        step(np.ones(3, F))


def test_without_numba_a_plan_is_made_of_numpy(monkeypatch):
    monkeypatch.setattr(jit, "installed", lambda: False)
    monkeypatch.setattr(jit, "why_not", lambda: pytest.fail("it imports numba"))
    _, _, run = trained(small_network, True, steps=1, batches=(MANY,))
    assert "numba" not in run.explain()


def test_why_numba_cannot_be_used(monkeypatch):
    """Not there, not for this numpy; or one of the packages that it uses is in the way."""
    for error, words in [
        (ImportError("No module named 'numba'"), "No module named 'numba'"),
        (AttributeError("no attribute 'types'"), "AttributeError: no attribute 'types'"),
    ]:

        def fails(name, error=error):
            raise error

        monkeypatch.setattr(jit.importlib, "import_module", fails)
        assert jit.why_not.__wrapped__() == words


def test_a_numba_that_cannot_be_imported_is_done_without(monkeypatch):
    monkeypatch.setattr(jit, "installed", lambda: True)
    monkeypatch.setattr(jit, "why_not", lambda: "Numba needs NumPy 1.0 or less")
    _, _, run = trained(small_network, True, steps=1, batches=(MANY,))
    assert "numba" not in run.explain()


def test_a_numba_that_cannot_compile_is_done_without_aloud(monkeypatch):
    def damaged(*given):
        raise EOFError("Ran out of input")

    monkeypatch.setattr(jit, "installed", lambda: True)
    monkeypatch.setattr(jit, "why_not", lambda: "")
    monkeypatch.setattr(jit, "compiled", damaged)
    with pytest.warns(PlanWarning, match="in numpy, for numba: EOFError: Ran out of input"):
        _, _, run = trained(small_network, True, steps=1, batches=(MANY,))
    assert "numba" not in run.explain()
    with pytest.raises(ArgumentError, match="EOFError: Ran out of input"):
        trained(small_network, True, fast=True)


def test_another_value_is_refused():
    with pytest.raises(ArgumentError, match="fast: expected True, False or None, got 'yes'"):
        tg.compile(tg.relu, fast="yes")


@needs_numba
@pytest.mark.parametrize("make", [small_network, three_convolutions])
@pytest.mark.parametrize("options", [{}, {"tile": 4, "threads": 2}], ids=str)
@pytest.mark.second
def test_a_training_is_that_of_the_graph(make, options):
    first, second = (trained(make, True, fast=True, **options) for _ in range(2))
    compiled = first[2].explain().split("compiled by numba: ")[1].split("\n")[0]
    assert compiled.count("%") == (1 if make is small_network else 3)
    assert_same(first, trained(make, False))
    assert first[0] == second[0]
    for a, b in zip(first[1].state_dict().values(), second[1].state_dict().values(), strict=True):
        np.testing.assert_array_equal(a, b)


@needs_numba
@pytest.mark.parametrize(
    ("fast", "n", "numba"), [(None, 20, False), (False, 20, False), (None, MANY, True)]
)
def test_by_default_where_the_values_are_many(fast, n, numba):
    model = small_network()
    run = tg.compile(lambda x: model(x), fast=fast)
    run(images(0, n)[0])
    assert ("compiled by numba" in run.explain()) is numba


KERNELS = """
import numpy as np
from tinygraph.plan.block_program import Writer
from tinygraph.plan.fast import elementwise_chain, single_channel_stage
writer = Writer(1)
chain = writer.compiled([writer.emit(np.add, writer.emit(np.exp, *writer.inputs), 1)])
f4 = np.dtype(np.float32)
stage = single_channel_stage
kernels = [loop.prepare(f4) for loop in (stage.gather, stage.forward, stage.backward)]
kernels.append(elementwise_chain.kernel(chain, (False,), f4))
"""
COUNTS = """
print(*[misses for kernel in kernels for misses in kernel.stats.cache_misses.values()])
print(*[hits for kernel in kernels for hits in kernel.stats.cache_hits.values()])
"""


@needs_numba
@pytest.mark.second
def test_a_second_process_compiles_nothing():
    exec(KERNELS, {})
    cache = os.environ.get("NUMBA_CACHE_DIR") or folder() / "numba"
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", KERNELS + COUNTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    assert done.stdout == "\n1 1 1 1\n"
