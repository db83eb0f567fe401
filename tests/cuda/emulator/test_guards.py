"""Plain launches: small arrays lie between guards, and an index that goes astray harms nothing."""

import sys
import threading

import numpy as np
import pytest

from tests.cuda.emulator.launching import assert_alive, in_child, run
from tinygraph.base.errors import KernelLaunchError
from tinygraph.cuda import Kernel

GUARDED = 64 * 1024  # bytes of all arrays of a launch together
SCALE = """
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}"""
POKE = """
__global__ void poke(float* y, long long i) { y[i] += 1; }"""


def refused(text, *args):
    with pytest.raises(KernelLaunchError) as error:
        run(text, 1, 1, *args)
    return str(error.value)


# What Python dies of comes later: at the end of the process, when the memory that was overwritten
# is given back.
@pytest.mark.parametrize("written, elements", [(2000, 1000), (1001, 1000), (300, 4), (20, 16)])
@pytest.mark.second
def test_python_lives_on_after_writes_past_the_end(written, elements):
    child = in_child(f"""
from tests.cuda.emulator.test_guards import SCALE
from tinygraph.base.errors import KernelLaunchError
for _ in range(20):
    beside = [np.ones({elements}, np.float32) for _ in range(20)]
    x, y = beside[3], beside[7]
    try:
        run(SCALE, 8, 256, x, y, 2.0, {written})
    except KernelLaunchError as error:
        words = str(error)
    assert (y == 2).all() and all((a == 1).all() for a in beside if a is not y)
launch_right()
print(words)
""")
    assert_alive(child, f"[{elements}] lies outside of the array, which has {elements} elements")
    assert "kernel.check(...)" in child.stdout and child.stderr == ""


@pytest.mark.parametrize("elements", [1, 3, 4, 1000, 1001, 4096, GUARDED // 4])
@pytest.mark.parametrize("past", [0, 1, 100, 2**20, 2**31 - GUARDED])
def test_writes_on_both_sides_are_told(elements, past):
    y = np.zeros(elements, np.float32)
    for index in (elements + past, -1 - past):
        words = refused(POKE, y, index)
        assert words.startswith("poke: ") and "run kernel.check(...)" in words
        assert f"y[{index}] lies outside of the array, which has {elements} elements" in words
    assert not y.any()


def test_a_read_past_the_last_page_is_told_with_its_line():
    x = np.ones(1024, np.float32)
    words = refused(
        "__global__ void k(const float* x, float* y) {\ny[0] = x[1024];\n}", x, x[:1] * 0
    )
    assert words.startswith(
        "k: block (0, 0, 0) thread (0, 0, 0): x[1024] lies outside of the array"
    )
    assert ":2: y[0] = x[1024];" in words


def test_the_array_is_told_among_several():
    text = "__global__ void k(int n, double* a, const int* b, double* c) { c[n] = a[0] + b[0]; }"
    words = refused(text, 70, np.ones(6), np.ones(5, np.int32), np.ones(64))
    assert "c[70] lies outside of the array, which has 64 elements" in words


@pytest.mark.parametrize("elements", [5, 16000, 17000])  # the last one is too large to be copied
def test_arrays_that_share_memory_still_do(elements):
    text = """
__global__ void shift(float* a, float* b, const float* c, int n) {
    for (int i = 0; i < n; i++) { b[i] += 1; a[i] += 2 * b[i]; }
    a[0] += 100 * c[n - 1];
}"""
    given = np.arange(elements, dtype=np.float32)
    found, wanted = given.copy(), given.astype(np.float64)
    n = elements - 1
    for i in range(n):
        wanted[1 + i] += 1
        wanted[i] += 2 * wanted[1 + i]
    wanted[0] += 100 * wanted[n - 1]
    run(text, 1, 1, found[:n], found[1:], found[:n], n)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_an_input_is_not_written_back_and_may_be_read_only():
    x = np.ones(10, np.float32)
    x.flags.writeable = False
    run("__global__ void k(const float* x) { ((float*)x)[0] = 5; }", 1, 1, x)
    assert (x == 1).all()


@pytest.mark.parametrize("start", range(4))
def test_a_view_keeps_its_alignment(start):
    whole = np.zeros(64, np.float32)
    view = whole[start : start + 40]
    address = np.zeros(1, np.int64)
    run("__global__ void k(float* x, long long* a) { a[0] = (long long)x; }", 1, 1, view, address)
    assert (address[0] - view.ctypes.data) % 16 == 0


@pytest.mark.parametrize("count", [16, 17, 40])
def test_many_arrays(count):
    names = [f"a{i}" for i in range(count)]
    body = " ".join(f"{name}[threadIdx.x] += {i};" for i, name in enumerate(names))
    text = f"__global__ void k({', '.join(f'int* {name}' for name in names)}) {{ {body} }}"
    arrays = [np.full(4, i, np.int32) for i in range(count)]
    run(text, 1, 4, *arrays)
    for i, array in enumerate(arrays):
        np.testing.assert_array_equal(array, np.full(4, 2 * i))


def test_a_small_output_beside_a_large_input():
    text = "__global__ void k(const float* x, float* y, int n) { y[n] = x[0]; }"
    words = refused(text, np.ones(10**6, np.float32), np.zeros(4, np.float32), 4)
    assert "y[4] lies outside of the array, which has 4 elements" in words


def test_what_was_written_before_the_fault_is_there():
    y = np.zeros(1000, np.float32)
    assert "y[1000]" in refused(
        "__global__ void k(float* y) { for (int i = 0; i < 2000; i++) y[i] = i; }", y
    )
    np.testing.assert_array_equal(y, np.arange(1000))


@pytest.mark.second
def test_threads_of_python_have_guards_of_their_own():
    def work(number):
        for _ in range(50):
            y = np.zeros(500, np.float32)
            run(SCALE, 2, 256, np.full(500, number, np.float32), y, 2.0, 500)
            done[number] += int((y == 2 * number).all())
            words[number] = refused(POKE, y, 500)

    done, words = [0] * 6, [""] * 6
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert done == [50] * 6 and all("y[500]" in w for w in words)


@pytest.mark.second
def test_of_blocks_that_fail_at_a_time_the_first_is_told():
    """Two threads run blocks; which one fails first is chance, which one is told is not."""
    text = """__global__ void k(float* x, int work) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0;
        for (int k = 0; k < work * (blockIdx.x == 3); k++) sum += x[k % 8];
        x[i] = sum;
    }"""
    kernel = Kernel(text, "k")
    for work in (0, 10, 100, 1000) * 25:
        with pytest.raises(KernelLaunchError) as error:
            kernel(16, 256, np.ones(1000, np.float32), work)
        assert "block (3, 0, 0) thread (232, 0, 0): x[1000] lies outside" in str(error.value)


def test_without_address_space_launches_go_on():
    """A limit of the process leaves no room for guards: arrays stay where they are."""
    child = in_child("""
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**36, 2**36))
launch_right()
print("alive")
""")
    assert_alive(child, "alive")
