"""g++, clang++ and the compiler of the wheel `ziglang` build the same verdicts, and build once."""

import json
import os
import shutil
import stat
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.cuda.emulator.launching import ROOT, assert_alive, in_child

pytestmark = pytest.mark.second

# One kernel for each kind of finding that depends on what the compiler makes of the source.
KINDS = {
    "wrong/race_double_buffer.cu": "race",
    "wrong/divergence_helper_in_both_branches.cu": "barrier-divergence",
    "wrong/oob_shared_by_one.cu": "out-of-bounds",
    "wrong/uninitialized_shared_tail.cu": "uninitialized",
    "wrong/warp_masks_differ.cu": "warp-sync",
    "wrong/misaligned_float4_plus_one.cu": "misaligned",
    "wrong/readonly_constant_table.cu": "read-only-write",
    "right/reduce_volatile_tail.cu": None,
    "right/gemm_tiled.cu": None,
    "right/warp_submask_groups.cu": None,
}
FAST = {"right/warp_submask_groups.cu", "right/gemm_tiled.cu"}  # these are launched plainly, too
PROFILED = {"right/reduce_volatile_tail.cu", "right/gemm_tiled.cu"}

VERDICTS = """
import dataclasses, json
from tests.cuda.test_gallery import GALLERY, Case, assert_equations
from tests.cuda.emulator.test_compilers import FAST, KINDS, PROFILED
from tinygraph.cuda.emulator.compiler import find_compiler

told = {"compiler": find_compiler().name, "family": find_compiler().family}
for name in KINDS:
    case = Case(GALLERY / name)
    launch, kernel, arguments = case.launch()
    report = kernel.check(launch.grid, launch.block, *arguments.values(), shared=launch.shared,
                          profile=name in PROFILED)
    found = [dataclasses.asdict(finding) for finding in report.findings]
    for finding in found:
        finding.pop("message")
    rows = [dataclasses.asdict(row) for row in report.lines]
    told[name] = [found, rows, report.bytes, report.operations]
    if name in FAST:
        _, inputs, results = case.run(checked=False)
        assert_equations(case, inputs, results)
print(json.dumps(told))
"""


def verdicts(command):
    """What one compiler's builds say of the kernels."""
    child = in_child(VERDICTS, seconds=300, CXX=command)
    assert child.returncode == 0, child.stdout + child.stderr
    return json.loads(child.stdout)


@pytest.fixture(scope="module")
def of_gcc():
    if not shutil.which("g++"):
        pytest.skip("there is no g++ to compare with")
    told = verdicts("g++")
    assert (told.pop("compiler"), told.pop("family")) == ("g++", "gcc")
    return told


def test_gcc_finds_the_mistakes(of_gcc):
    """The others are compared with it: it must not be silent itself."""
    for name in KINDS:
        found, rows, moved, operations = of_gcc[name]
        assert {f["kind"] for f in found} == {KINDS[name]} - {None}, name
        assert (name in PROFILED) == bool(rows and moved and operations)


@pytest.mark.parametrize("compiler", ["clang++", "ziglang"])
def test_other_compilers_say_the_same(of_gcc, compiler):
    if compiler == "ziglang":
        if find_spec("ziglang") is None:
            pytest.skip("the wheel ziglang is not installed")
        command = f"{sys.executable} -m ziglang c++"
    else:
        command = shutil.which("clang++")
        if not command:
            pytest.skip("there is no clang++")
    told = verdicts(command)
    assert (told.pop("compiler"), told.pop("family")) == (compiler, "clang")
    for name in KINDS:
        assert told[name] == of_gcc[name], name


# ---- compiled once -------------------------------------------------------------------------------

USE = """
RIGHT = RIGHT.replace("right", "counted")
y = np.zeros(64, np.float32)
for _ in range(3):
    run(RIGHT, 1, 64, y, 64)
    assert check(RIGHT, 1, 64, y, 64).ok
    assert check(RIGHT, 1, 64, y, 64, profile=True).ok
assert (y == np.arange(64)).all()
print("alive")
"""


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A compiler that writes down each of its runs, and an empty cache; the list of the runs."""
    real = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("clang++")
    if not real:
        pytest.skip("there is neither g++ nor clang++")
    log, script = tmp_path / "runs", tmp_path / "c++ that counts"
    script.write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec "{real}" "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", f"'{script}'")  # with blanks: as a shell reads it
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path / "cache"))

    def runs():
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line for line in lines if line != "--version"]

    return runs


# The run time; plain and checked: the headers, compiled, linked; profiled: compiled, assembled,
# linked.
RUNS = 1 + 3 + 3 + 3


def start():
    from tests.cuda.emulator.launching import PREAMBLE

    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + USE],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_two_processes_compile_once_and_a_third_not_at_all(counted, tmp_path):
    both = [start(), start()]
    assert [process.communicate(timeout=120)[0] for process in both] == ["alive\n"] * 2
    runs = counted()
    assert len(runs) == RUNS, "\n".join(runs)
    third = start()
    assert third.communicate(timeout=120)[0] == "alive\n"
    assert counted() == []
    kept = sorted(path.suffix for path in (tmp_path / "cache").iterdir())
    # Plain and checked headers, the run time, three builds, the sums of these; no lock, no source,
    # no half file.
    assert kept == [".gch"] * 2 + [".h"] * 2 + [".sha256"] * 6 + [".so"] * 4


def test_another_macro_is_another_build_and_the_run_time_stays(counted):
    code = """
from tinygraph.cuda import Kernel
TEXT = "__global__ void k(int* y) { y[threadIdx.x] = VALUE; }"
y = np.zeros(4, np.int32)
for value in (1, 2, 1, 2):
    Kernel(TEXT, "k", {"VALUE": value})(1, 4, y)
    assert (y == value).all()
"""
    child = in_child(code)
    assert child.returncode == 0, child.stderr
    assert len(counted()) == 1 + 1 + 2 + 2  # the run time, the headers, two kernels


def test_a_kernel_may_outlive_the_cache_of_the_run_time(tmp_path):
    """Built where the run time lay in another folder, launched when that folder is gone."""
    code = """
import shutil
from tinygraph.cuda.emulator.compiler import runtime_library
os.environ["TINYGRAPH_CACHE"] = sys.argv[-1] + "/first"
runtime_library()
os.environ["TINYGRAPH_CACHE"] = sys.argv[-1] + "/second"
launch_right()
if os.path.exists(sys.argv[-1] + "/first"):
    shutil.rmtree(sys.argv[-1] + "/first")
print("alive")
"""
    code = code.replace("sys.argv[-1]", repr(str(tmp_path)))
    assert_alive(in_child(code), "alive")
    assert_alive(in_child(code.replace("/first", "/third")), "alive")
