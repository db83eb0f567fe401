"""What cannot be right is a clear error, Python lives on, and the next launch works.

Each kernel that fails is launched plainly and under the checker; both say what happened and where.
Kernels that fail while nothing is checked also run in a process of their own, which tells whether
one of them would end it.
"""

import re
import sys
import threading
import time

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_alive, check, in_child, kernel, marked, run
from tinygraph.base.errors import KernelCompileError, KernelLaunchError
from tinygraph.cuda import Kernel

RIGHT = """
__global__ void right(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i;
}"""


@pytest.fixture(autouse=True)
def a_right_launch_follows(monkeypatch):
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "0.5")
    yield
    monkeypatch.undo()  # a compiler was hidden, perhaps
    y = np.zeros(5000, np.float32)
    run(RIGHT, 20, 256, y, y.size)
    np.testing.assert_array_equal(y, np.arange(5000))


# ---- compilers -----------------------------------------------------------------------------------


def unseen(text=RIGHT):
    """A kernel that this process has not compiled yet."""
    unseen.count = getattr(unseen, "count", 0) + 1
    return Kernel(text, "right", {"UNSEEN": unseen.count})


def test_without_a_compiler_the_message_names_three_ways_out(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    for start in (unseen(), unseen().check):
        with pytest.raises(KernelCompileError) as error:
            start(1, 32, np.zeros(32, np.float32), 32)
        words = str(error.value)
        assert "expected a C++ compiler, none was found" in words
        for way_out in ("pip install ziglang", "install g++ or clang++", "variable CXX"):
            assert way_out in words


@pytest.mark.parametrize("named", ["no-such-compiler", "/bin/false", "g++ '", "  ", "/", "g++ -x"])
def test_cxx_that_does_not_run_is_named(monkeypatch, named):
    monkeypatch.setenv("CXX", named)
    with pytest.raises(KernelCompileError, match=re.escape(f"$CXX is {named!r}, which does not")):
        unseen()(1, 32, np.zeros(32, np.float32), 32)


@pytest.mark.parametrize("named", ["cat", "echo"])
def test_cxx_that_is_no_compiler_is_named(monkeypatch, named):
    monkeypatch.setenv("CXX", named)  # it fails at the run time, or at the headers if that is there
    with pytest.raises(KernelCompileError, match=f"{named} cannot (build the run time|read the h)"):
        unseen()(1, 32, np.zeros(32, np.float32), 32)


def assert_shown(words, file, text, broken, message):
    """File, line and column, the line of the source, and a caret under what is wrong."""
    lines = text.splitlines()
    number = next(n for n, line in enumerate(lines, 1) if broken in line)
    column = lines[number - 1].index(broken) + 1
    assert re.search(rf"{re.escape(file)}:{number}:{column}: error: .*{message}", words), words
    shown, caret = words.split(f"{number} | ", 1)[1].splitlines()[:2]
    assert shown == lines[number - 1]
    assert caret.index("^") - caret.index("|") - 2 == column - 1


BROKEN = """
__global__ void broken(float* x) {
    __shared__ float tile[4][8], other;

    tile[0][threadIdx.x] = 1;  other = 2;
    x[0] = tile[0][0] + unknown;
}"""


@pytest.mark.parametrize("start", [run, check])
def test_a_compile_error_shows_the_line_of_the_source(start):
    with pytest.raises(KernelCompileError) as error:
        start(BROKEN, 1, 8, np.zeros(8, np.float32))
    assert_shown(str(error.value), "<source>", BROKEN, "unknown", "unknown")


def test_a_compile_error_in_an_include_file_shows_that_file(tmp_path):
    header = "#pragma once\n\n__device__ float half_of(float v) { return missing * v; }\n"
    (tmp_path / "half.cuh").write_text(header)
    path = tmp_path / "uses.cu"
    path.write_text(
        '// a comment\n#include "half.cuh"\n__global__ void uses(float* x) '
        "{ x[0] = half_of(x[0]); }\n"
    )
    with pytest.raises(KernelCompileError) as error:
        Kernel(path, "uses")(1, 1, np.zeros(1, np.float32))
    assert_shown(str(error.value), "half.cuh", header, "missing", "missing")


def test_a_mistake_in_shared_memory_is_told_at_its_line():
    text = "__global__ void k(float* x) {\n\n    __shared__ 5;\n    x[0] = 1;\n}"
    with pytest.raises(KernelCompileError, match=r"<source>:3: __shared__ 5: expected a decl"):
        run(text, 1, 1, np.zeros(1, np.float32))


# ---- launches that are refused before they start -------------------------------------------------

REFUSED = {  # grid, block, arguments, dynamic shared memory, words
    "too few": (1, 32, (np.zeros(9, np.float32),), 0, "arguments: expected 2 arguments .*got 1"),
    "too many": (1, 32, (np.zeros(9, np.float32), 9, 9), 0, "arguments: expected 2 .*got 3"),
    "dtype": (1, 32, (np.zeros(9), 9), 0, r"y: expected an array of float32 .*float64.*astype"),
    "layout": (1, 32, (np.zeros((6, 6), np.float32).T[1:], 9), 0, "y: .*C-contiguous.*strides"),
    "grid 0": (0, 32, (np.zeros(9, np.float32), 9), 0, "grid: .*got 0"),
    "grid too wide": ((1, 65536), 32, (np.zeros(9, np.float32), 9), 0, "grid: .*65535"),
    "block 0": (1, 0, (np.zeros(9, np.float32), 9), 0, "block: .*got 0"),
    "block 2000": (1, 2000, (np.zeros(9, np.float32), 9), 0, "block: .*1024.*2000"),
    "block 3-D": (1, (16, 16, 5), (np.zeros(9, np.float32), 9), 0, "block: .*1024"),
    "block z": (1, (1, 1, 65), (np.zeros(9, np.float32), 9), 0, "block: .*64"),
    "shared": (1, 32, (np.zeros(9, np.float32), 9), 227 * 1024 + 1, "shared: .*232448"),
    "shared -1": (1, 32, (np.zeros(9, np.float32), 9), -1, "shared: .*got -1"),
    "a float": (1, 32, (np.zeros(9, np.float32), 9.5), 0, "n: expected an int .*got the float 9.5"),
}


@pytest.mark.parametrize("start", [run, check])
@pytest.mark.parametrize("name", REFUSED)
def test_bad_launches_are_refused(name, start):
    grid, block, args, shared, words = REFUSED[name]
    with pytest.raises(KernelLaunchError, match=f"^right: {words}"):
        start(RIGHT, grid, block, *args, shared=shared)


# ---- kernels that fail while they run ------------------------------------------------------------

HEAD = "__global__ void k(int* x, int n) {\nint t = threadIdx.x;\n"
FAILING = {  # body; words of the plain launch; the kind that the checker finds, or the same words
    "spins without memory": ("for (;;) n = n * 3 + t; // <-", "not done after 0.5", "timeout"),
    "spins on a read": ("while (*(volatile int*)x == 0) {} // <-", "not done after", "timeout"),
    "spins on an atomic": ("while (atomicAdd(x, 0) == 0) {} // <-", "not done after", "timeout"),
    "writes for ever": (
        "for (unsigned i = 0; ; i++) x[i % 8 + t * 8] = i; // <-",
        "not done after",
        "timeout",
    ),
    "spins in one thread": (
        "if (t == 3) for (volatile int i = 0; i < 10;) i = 0; // <-\n__syncthreads();",
        "not done after",
        "deadlock",
    ),
    "near": ("x[(1 << 28) + t] = 1; // <-", r"x\[26843545[6-9]\] lies outside", "out-of-bounds"),
    "far": ("x[1ll << 44] = 1; // <-", "address is far beyond all memory", "out-of-bounds"),
    "null": ("int* p = 0; p[t] = 1; // <-", "address (0|0x[0-9a-f]) belongs", "out-of-bounds"),
    "null is read": ("int* p = 0; x[t] = p[t]; // <-", "belongs to no array", "out-of-bounds"),
    "into the code": ("((volatile char*)&deep)[t] = 1; // <-", "belongs to no array", None),
    "one big frame": (
        "volatile int a[100000]; for (int i = 0; i < n; i++) a[i * 97] = i;\nx[t] = a[9];",
        "more than 128 KiB of local variables",
        None,
    ),
    "recursion": ("x[t] = deep(x, n);", "local variables, or endless recursion", None),
    "division": ("x[t] = n / (n - 1000); // <-", "integer division by zero", "arithmetic"),
    "remainder": ("x[t] = n % (n - 1000); // <-", "integer division by zero", "arithmetic"),
    "long division": (
        "x[t] = (long long)n / (n - 1000); // <-",
        "integer division by zero",
        "arithmetic",
    ),
    "overflow": (
        "x[t] = (-2147483647 - n / 1000) / (999 - n); // <-",
        "or its overflow",
        "overflow",
    ),
    "trap": ("if (t == 3) __trap(); // <-", r"__trap\(\)", None),
    "assert": ('assert(t < 3 && "few"); // <-', r"assertion failed: t < 3 && \"few\"", None),
    "a mask never meets": (
        "if (t == 0) __syncwarp(); // <-\nelse __syncthreads(); // <-",
        "the lanes of a mask never meet",
        "deadlock",
    ),
    "static shared": (
        "__shared__ int big[60000]; // <-\nbig[t] = 1; x[t] = big[n];",
        "240000 bytes of shared memory with `big`; a block may have 232448",
        None,
    ),
    "both shared": (
        "extern __shared__ int more[]; __shared__ int big[54000]; // <-\n"
        "more[t] = big[t] = 1; x[t] = big[t] + more[t];",
        "233000 bytes of shared memory with `big`",
        None,
    ),
}
DEEP = """
__device__ int deep(volatile int* x, int n) {
    volatile int a[64];
    a[n & 63] = n;
    return n < 0 ? 0 : deep(x, n + 1) + a[n & 63];
}
"""
SHARED = {"both shared": 17000}


def failing(name):
    """The source, its arguments, and its dynamic shared memory."""
    text = f"{DEEP}{HEAD}{FAILING[name][0]}\n}}"
    return text, (np.zeros(64, np.int32), 1000), SHARED.get(name, 0)


def refuse(start, name):
    """The words of the error of a launch that must fail."""
    text, args, shared = failing(name)
    with pytest.raises(KernelLaunchError) as error:
        start(text, 2, 4, *args, shared=shared)
    return text, str(error.value)


@pytest.mark.parametrize("name", FAILING)
def test_a_plain_launch_says_what_happened_and_where(name):
    text, words = refuse(run, name)
    assert re.search(
        rf"^k: block \([01], 0, 0\) thread \([0-3], 0, 0\): .*{FAILING[name][1]}", words
    )
    assert "Way out: " in words and not words.endswith("Way out: ")
    for line in [text.splitlines()[n - 1] for n in sorted(marked(text))][:1]:
        # An endless loop without memory may be told at the head of its function.
        assert line in words or "spins" in name or "for ever" in name, words


@pytest.mark.second
@pytest.mark.parametrize("name", [name for name in FAILING if FAILING[name][2]])
def test_the_checker_finds_the_line(name):
    text, args, shared = failing(name)
    report = check(text, 2, 4, *args, shared=shared)
    (finding, *_) = [f for f in report.findings if f.kind == FAILING[name][2]]
    assert finding.line in marked(text) and finding.text.endswith("// <-"), report.text()


@pytest.mark.parametrize("name", [name for name in FAILING if not FAILING[name][2]])
def test_a_checked_launch_fails_in_the_same_words(name):
    _, words = refuse(check, name)
    assert re.search(FAILING[name][1], words)
    assert "kernel.check" not in words  # that is what was called


def test_arrays_hold_what_was_written_before_a_checked_kernel_failed():
    x = np.zeros(64, np.int32)
    text = f"{HEAD}x[t] = t + 1;\n__syncthreads();\nif (t == n) x[1 << 20] = 1; // <-\n}}"
    report = check(text, 1, 64, x, 5)
    assert [f.kind for f in report.findings] == ["out-of-bounds"] and report.findings[0].thread[
        0
    ] == 5
    np.testing.assert_array_equal(x, np.arange(1, 65))


@pytest.mark.second
def test_a_process_survives_all_of_them_twice():
    """Also with faulthandler, which handles the same signals."""
    child = in_child(
        """
import faulthandler
faulthandler.enable()
from tests.cuda.emulator.test_failures import FAILING, failing
for name in 2 * [name for name in FAILING if "spins" not in name and "ever" not in name]:
    text, args, shared = failing(name)
    try:
        run(text, 2, 4, *args, shared=shared)
        print("nothing was said of", name)
    except tinygraph.errors.KernelLaunchError:
        launch_right()
print("alive")
""".replace("import faulthandler", "import faulthandler, tinygraph")
    )
    assert_alive(child, "alive")
    assert child.stdout == "alive\n" and child.stderr == ""


def test_a_fault_outside_of_kernels_still_ends_the_process():
    """The handlers of the emulator serve kernels only; faulthandler tells of all others."""
    child = in_child("""
import ctypes, faulthandler
faulthandler.enable()
launch_right()
ctypes.string_at(8)
print("not reached")
""")
    assert child.returncode < 0 and "Segmentation fault" in child.stderr
    assert "not reached" not in child.stdout


@pytest.mark.second
def test_python_keeps_other_threads_running_while_a_kernel_spins():
    text, args, _ = failing("spins without memory")
    ticks, errors = [], []

    def spin():
        try:
            run(text, 1, 1, *args)
        except KernelLaunchError as error:
            errors.append(error)

    launch = threading.Thread(target=spin)
    launch.start()
    while launch.is_alive():
        ticks.append(time.monotonic())
        time.sleep(0.01)
    assert len(ticks) > 10 and len(errors) == 1


# ---- who else would err, and how long that is counted --------------------------------------------

TAIL = """
__global__ void tail(float* y, int barrier) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (barrier) __syncthreads();
    y[i] = i; // <-
    if (barrier) __syncthreads();
}"""


@pytest.mark.parametrize("barrier", [0, 1])
def test_threads_that_would_err_too_are_counted(barrier):
    """Of 4 x 64 threads for 100 elements, 28 of the second block err, and all of the last two."""
    report = check(TAIL, 4, 64, np.zeros(100, np.float32), barrier)
    (finding,) = report.findings  # the barrier that they miss is no finding of its own
    assert finding.kind == "out-of-bounds" and finding.line in marked(TAIL)
    first = 63 if barrier else 36  # who comes last to a barrier goes on first
    assert (finding.block, finding.thread, finding.index) == ((1, 0, 0), (first, 0, 0), 64 + first)
    assert finding.others == 28 + 64 + 64 - 1
    assert "y has 100 elements (and 155 other threads)" in finding.message


def test_of_threads_that_err_elsewhere_none_is_counted():
    text = """
__global__ void two(float* y) {
    if (threadIdx.x < 8) y[threadIdx.x + 16] = 1; // <-
    else y[threadIdx.x + 32] = 2;
}"""
    (finding,) = check(text, 1, 32, np.zeros(20, np.float32)).findings
    assert finding.line in marked(text) and finding.others == 3
    (only,) = check(text, 1, 5, np.zeros(20, np.float32)).findings
    assert only.others == 0 and "other thread" not in only.message


def test_the_count_ends_where_others_wait_for_a_thread_that_is_stopped():
    text = """
__global__ void waits(volatile int* flag, int* y) {
    if (threadIdx.x == 0) { y[4] = 1; flag[0] = 1; } // <-
    while (flag[0] == 0) {}
}"""
    report = check(text, 1, 32, np.zeros(1, np.int32), np.zeros(4, np.int32))
    (finding,) = report.findings
    assert finding.kind == "out-of-bounds" and finding.line in marked(text)
    assert finding.others == 0


def test_a_check_takes_a_time_limit():
    text = """
__global__ void spins(int n) {
    for (volatile int i = 0; i >= 0; i = i & 7) {} // <-
}"""
    begin = time.process_time()
    report = kernel(text).check((1, 2), 1, 1, timeout=0.2)
    assert time.process_time() - begin < 1.5  # and not the 2 seconds of this module
    (finding,) = report.findings
    assert finding.kind == "timeout" and finding.line in marked(text)
    assert "block (0, 0, 0) thread (0, 0, 0)" in finding.message
    assert "after 0.2 seconds" in finding.message
