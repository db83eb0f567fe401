"""The kernels of one file are in one library, where that can be; otherwise each has its own."""

import numpy as np
import pytest

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda import Kernel
from tinygraph.cuda.emulator.loading import load

FILE = """
__device__ int launches;
template <class T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
__global__ void ones(int* x) { x[threadIdx.x] = 1; atomicAdd(&launches, 1); }
__global__ void twos(int* x) { x[threadIdx.x] = 2; atomicAdd(&launches, 1); }
#if 0
__global__ void absent(int* x) {}
#endif
__global__ void count(int* x) { x[threadIdx.x] = launches; }
"""


def path(name, checked, text=FILE, **defines):
    kernel = Kernel(text, name, defines)
    return load(kernel.source, kernel.signature, checked).path


@pytest.mark.parametrize("checked", [False, True])
def test_kernels_of_a_file_share_a_library(checked):
    paths = {path(name, checked) for name in ("ones", "twos", "count")}
    assert len(paths) == 1
    assert path("fill<int>", checked) not in paths
    assert path("ones", checked, WIDE=1) not in paths  # other macros
    assert path("ones", not checked) not in paths


def test_they_share_the_variables_of_the_file():
    x = np.zeros(1, np.int32)
    for name, value in (("ones", 1), ("twos", 2)):
        Kernel(FILE, name)(1, 1, x)
        assert x[0] == value
    before = x[0]
    Kernel(FILE, "count")(1, 1, x)
    assert x[0] == before == 2


def test_each_is_called_by_its_own_entry():
    for name, value in (("ones", 1), ("twos", 2)):
        x = np.zeros(4, np.int32)
        assert Kernel(FILE, name).check(1, 4, x).ok
        np.testing.assert_array_equal(x, value)


def test_a_kernel_that_cannot_be_named_does_not_hinder_the_others():
    """Two functions have the name `twice`; the kernel in the namespace is no `&inner`."""
    text = """
__global__ void twice(float* x) { x[0] *= 2; }
__global__ void twice(double* x) { x[0] *= 2; }
namespace space { __global__ void inner(float* x) { x[0] = 3; } }
__global__ void plain(float* x) { x[0] = 5; }
__global__ void other(float* x) { x[0] = 7; }"""
    for name, value in (("plain", 5), ("other", 7)):
        x = np.zeros(1, np.float32)
        Kernel(text, name)(1, 1, x)
        assert x[0] == value


def test_a_mistake_is_told_once_with_its_line():
    text = """
__global__ void right(float* x) { x[0] = 1; }
__global__ void wrong(float* x) { x[0] = missing; }"""
    with pytest.raises(KernelCompileError, match=r"<source>:3:\d+: error: .*missing"):
        Kernel(text, "right")(1, 1, np.zeros(1, np.float32))
