"""What others can have written into a cache is not loaded; what was damaged is built again, once.

Other owners: their numbers are put into what `os.lstat` says, for any user; files of another owner
are made where root runs the tests.
"""

import os
import pwd
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

from tinygraph.base import build_cache as cache
from tinygraph.base.build_cache import compiled, folder, key
from tinygraph.cuda import Kernel
from tinygraph.cuda.emulator import compiler, loading, native
from tinygraph.cuda.nvrtc.built import built

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache"
    forget()


def forget():
    """The private folder of a test is not that of another one."""
    cache.private_folder.cache_clear()
    cache._temporary.cache_clear()


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def writer(text):
    return lambda path: path.write_text(text) and None


def never(path):
    raise AssertionError("built a second time")


def owned_by(monkeypatch, *paths, number=STRANGER):
    """os.lstat says that these paths belong to another user."""
    real = os.lstat

    def lstat(path, *given, **named):
        found = real(path, *given, **named)
        if str(path) not in map(str, paths):
            return found
        values = list(found)
        values[4] = number
        return os.stat_result(values)

    monkeypatch.setattr(os, "lstat", lstat)


def refused(words):
    """The folder that is taken in the place of the user's, and named in the warning."""
    with pytest.warns(RuntimeWarning, match=words) as heard:
        path = folder()
    (message,) = [str(warning.message) for warning in heard]
    assert f"into {path}" in message
    assert path.stat().st_mode & 0o77 == 0 and path.stat().st_uid == os.geteuid()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert folder() == path  # one warning a process
    return path


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o770, 0o757, 0o1777, 0o1770, 0o2775])
@pytest.mark.parametrize("which", ["cache", "parent"])
def test_a_folder_where_others_may_write_is_no_cache(tmp_path, monkeypatch, mode, which):
    place = tmp_path / "shared" / "cache"
    place.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("TINYGRAPH_CACHE", str(place))
    (place if which == "cache" else place.parent).chmod(mode)
    assert tmp_path not in refused(f"may be written by others \\(mode {mode:o}\\)").parents
    assert not list(place.iterdir())


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_the_other_variables_are_looked_at_likewise(tmp_path, monkeypatch, variable):
    monkeypatch.delenv("TINYGRAPH_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "shared" / "mine").mkdir(parents=True)
    monkeypatch.setenv(variable, str(tmp_path / "shared" / "mine"))
    (tmp_path / "shared").chmod(0o1777)  # as /tmp
    refused(f"{tmp_path}/shared may be written by others")
    assert not list((tmp_path / "shared" / "mine").iterdir())  # nothing was begun there


def test_a_folder_higher_up_may_be_sticky(tmp_path, monkeypatch, silent):
    """As /tmp above the folders of pytest, where this test runs by default."""
    place = tmp_path / "sticky" / "own" / "mine"
    place.mkdir(parents=True, mode=0o700)
    place.parent.chmod(0o700)
    (tmp_path / "sticky").chmod(0o1777)
    owned_by(monkeypatch, tmp_path / "sticky", number=0)
    monkeypatch.setenv("TINYGRAPH_CACHE", str(place))
    assert folder() == place


def test_a_folder_of_another_owner_is_no_cache(tmp_path, monkeypatch):
    for place in (tmp_path / "cache", tmp_path):
        with monkeypatch.context() as patch:
            owned_by(patch, place)
            refused(f"{place} belongs to another user \\(number {STRANGER}\\)")


def test_a_folder_of_roots_is_ours(tmp_path, monkeypatch, silent):
    owned_by(monkeypatch, tmp_path, number=0)
    assert folder() == tmp_path / "cache"


def test_a_link_leads_to_what_is_looked_at(tmp_path, monkeypatch):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "link"))
    refused("may be written by others")


def test_what_is_made_is_for_the_user_alone(own_folder, monkeypatch, silent):
    before = os.umask(0)
    try:
        path = compiled(["a"], ".so", writer("x"))
    finally:
        os.umask(before)
    assert own_folder.stat().st_mode & 0o777 == 0o700
    assert all(p.stat().st_mode & 0o22 == 0 for p in own_folder.iterdir())
    assert compiled(["a"], ".so", never) == path


@pytest.mark.parametrize("how", ["owner", "mode", "link"])
def test_a_file_that_others_can_have_written_is_not_loaded(own_folder, monkeypatch, tmp_path, how):
    path = compiled(["a"], ".so", writer("mine"))
    path.write_text("theirs")
    if how == "owner":
        owned_by(monkeypatch, path)
    elif how == "mode":
        path.chmod(0o666)
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    words = {"owner": "belongs to another", "mode": "may be written", "link": "is no file"}[how]
    with pytest.warns(RuntimeWarning, match=f"{path} is not loaded: it {words}"):
        found = compiled(["a"], ".so", writer("mine again"))
    assert found.read_text() == "mine again" and own_folder not in found.parents
    assert path.read_text() == "theirs"  # and not touched
    assert compiled(["a"], ".so", never) == found


LIBRARY = 'static __attribute__((constructor)) void run() { creat("%s", 0600); }\n'
KERNEL = "__global__ void k(int* y) { y[threadIdx.x] = 3; }"
CHILD = f"""
import numpy as np
from tinygraph.cuda import Kernel
y = np.zeros(4, np.int32)
Kernel({KERNEL!r}, "k")(1, 4, y)
assert (y == 3).all()
"""


@as_root
@pytest.mark.second
def test_the_constructor_of_a_strangers_library_does_not_run(tmp_path, own_folder):
    """The names are known to all: the stranger has compiled the same kernel."""
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-c", CHILD]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    libraries = list(own_folder.glob("*.so"))
    (tmp_path / "a.c").write_text("int creat(const char*, int);\n" + LIBRARY % (tmp_path / "ran"))
    for path in libraries:
        path.unlink()
        options = ["-x", "c", str(tmp_path / "a.c"), "-shared", "-fPIC", "-o", str(path)]
        done = compiler.find_compiler().run(*options)
        assert not done.returncode, done.stderr
        path.with_name(f"{path.name}.sha256").write_text(cache.sum_of(path))
        os.chown(path, STRANGER, STRANGER)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "belongs to another user" in done.stderr and not (tmp_path / "ran").exists()


# ---- damage -------------------------------------------------------------------------------------


def damaged(content):
    half = len(content) // 2
    return {
        "empty": b"",
        "cut": content[:half],
        "rubbish": b"\x55" * len(content),
        "one bit": bytes(x ^ (i == half) for i, x in enumerate(content)),
        "longer": content + b"?",
    }


KINDS = list(damaged(b""))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [".so", ".h.gch", ".nvrtc.zip", ".program", ".o", ".sass"])
def test_a_damaged_file_is_built_again_once_with_a_warning(suffix, kind):
    content = bytes(range(256)) * 2
    path = compiled(["a"], suffix, lambda path: path.write_bytes(content) and None)
    path.write_bytes(damaged(content)[kind])
    with pytest.warns(RuntimeWarning, match=f"{path.name} was damaged, and is built again"):
        assert compiled(["a"], suffix, writer("anew")) == path
    assert path.read_text() == "anew"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(["a"], suffix, never) == path


def test_a_sum_that_was_damaged_is_no_reason_to_load(own_folder):
    path = compiled(["a"], ".so", writer("x"))
    path.with_name(f"{path.name}.sha256").write_bytes(b"\xff" * 10)
    with pytest.warns(RuntimeWarning, match="was damaged"):
        compiled(["a"], ".so", writer("y"))
    assert path.read_text() == "y"


def test_a_file_of_an_earlier_version_has_no_sum(silent):
    path = compiled(["a"], ".so", writer("x"))
    path.with_name(f"{path.name}.sha256").unlink()
    compiled(["a"], ".so", writer("y"))
    assert path.read_text() == "y"


@pytest.mark.second
def test_a_kernel_runs_whatever_file_of_its_was_damaged(own_folder):
    """Each file of the cache in turn: run time, kernel, headers that were read already."""
    environment = {**os.environ, "PYTHONWARNINGS": "default"}

    def run(text):
        done = subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert run(CHILD) == ""
    for path in sorted(own_folder.iterdir()):
        if path.suffix in (".so", ".gch"):
            path.write_bytes(damaged(path.read_bytes())["cut"])
            # The headers are looked at where something is compiled: another kernel.
            text = CHILD.replace("= 3;", "= 3 + 0;") if path.suffix == ".gch" else CHILD
            assert run(text).count("was damaged, and is built again") == 1
            assert run(text) == ""


@pytest.mark.second
def test_what_cannot_be_loaded_though_it_is_whole_is_built_again_once(own_folder, monkeypatch):
    """A library for another system, in a home that two machines share."""
    monkeypatch.setattr(loading, "_loaded", {})
    real, made = native.kernel_library, []

    def for_another_system(source, unit, build):
        path = real(source, unit, build)
        made.append(path)
        if len(made) == 1:
            path.write_bytes(b"\x7fELF of another system")
            path.with_name(f"{path.name}.sha256").write_text(cache.sum_of(path))
        return path

    monkeypatch.setattr(native, "kernel_library", for_another_system)
    y = np.zeros(4, np.int32)
    with pytest.warns(RuntimeWarning, match=r"cannot be loaded \(.*, and is built again"):
        Kernel(KERNEL, "k")(1, 4, y)
    assert (y == 3).all() and len(made) == 2 and made[0] == made[1]


@pytest.mark.second
def test_a_library_that_can_never_be_loaded_is_an_error(own_folder, monkeypatch):
    monkeypatch.setattr(loading, "_loaded", {})
    real = native.kernel_library

    def rubbish(source, unit, build):
        path = real(source, unit, build)
        path.write_bytes(b"rubbish")
        return path

    monkeypatch.setattr(native, "kernel_library", rubbish)
    with (
        pytest.warns(RuntimeWarning, match="cannot be loaded"),
        pytest.raises(native.KernelCompileError, match="a library that can be loaded"),
    ):
        Kernel(KERNEL, "k")(1, 4, np.zeros(4, np.int32))


# ---- machine code that was built ahead of time --------------------------------------------------


@pytest.fixture
def ahead(tmp_path, monkeypatch):
    place = tmp_path / "built"
    place.mkdir()
    monkeypatch.setenv("TINYGRAPH_CUBINS", str(place))
    with zipfile.ZipFile(place / f"{key(['a'])}.zip", "w") as archive:
        for name in ("cubin", "log", "about"):
            archive.writestr(name, name * 100)
    return place / f"{key(['a'])}.zip"


@pytest.mark.parametrize("kind", KINDS[:4])
def test_machine_code_that_is_damaged_is_compiled_anew(ahead, kind):
    assert built(["a"]) == ahead
    content = ahead.read_bytes()
    ahead.write_bytes(damaged(content)[kind])
    with pytest.warns(RuntimeWarning, match="is not loaded .*; its kernel is compiled anew"):
        assert built(["a"]) is None
    assert ahead.exists()  # it is not ours to take away


def test_machine_code_of_others_is_compiled_anew(ahead, monkeypatch):
    for place in (ahead, ahead.parent):
        with monkeypatch.context() as patch:
            owned_by(patch, place)
            with pytest.warns(RuntimeWarning, match="belongs to another user"):
                assert built(["a"]) is None
    ahead.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="may be written by others"):
        assert built(["a"]) is None


# ---- no home ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value"),
    [(None, ""), ("TINYGRAPH_CACHE", "~/cache"), ("XDG_CACHE_HOME", "~nobody-here/x")],
)
def test_without_a_home_the_cache_is_private_and_no_folder_is_named_so(
    tmp_path, monkeypatch, variable, value
):
    """A container that runs as a number: no $HOME, no line in /etc/passwd."""

    def getpwuid(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    for name in ("HOME", "XDG_CACHE_HOME", "TINYGRAPH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        path = compiled(["a"], ".so", writer("x"))
    assert path.is_absolute() and "~" not in str(path) and not list(tmp_path.iterdir())
    assert len(heard) == (variable == "TINYGRAPH_CACHE")  # nobody asked for another


def test_the_rule_is_that_of_every_folder_that_is_made(tmp_path):
    """make_private makes what lacks, and nothing else."""
    (tmp_path / "old").mkdir(mode=0o755)
    cache.make_private(tmp_path / "old" / "new" / "newer")
    modes = [p.stat().st_mode & 0o777 for p in (tmp_path / "old", *(tmp_path / "old").rglob("*"))]
    assert modes == [0o755, 0o700, 0o700]
