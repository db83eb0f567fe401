"""A file as people have it: its kernels are checked, its host code is left out."""

import numpy as np
import pytest

from tests.cuda.emulator.host.running import PROGRAMS
from tinygraph.cuda import Kernel, Out
from tinygraph.cuda.reading.host_code import has_host_code, without_host_code
from tinygraph.cuda.reading.tokens import tokens


def device_half(text):
    found = without_host_code(list(tokens(text)), frozenset({"cuda_runtime.h"}))
    return "".join(token.text for token in found)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ float twice(float x) { return 2 * x; }",
        "template <class T> __global__ void k(T* x) { *x = 0; }",
        "#define HD __host__ __device__\nstruct P { float x; HD P operator+(P q) { return q; } };",
        "constexpr int half(int n) { return n / 2; }",
        "__constant__ float taps[9];",
        "enum { N = 4 };",
        "typedef unsigned int uint;",
        "const int BLOCK = 32;",
        "const float TABLE[2] = {1, 2};",
        "#include <cuda_runtime.h>",
        "namespace n { __device__ int i; }",
        '#line 3 "a.cu"',
    ],
)
def test_what_kernels_may_use_stays(text):
    assert device_half(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "int main() { k<<<1, 2>>>(); }",
        'static void report(int n) { printf("%d", n); }',
        "template <int N> void run(int n) { k<N><<<1, n>>>(); }",
        "using namespace std;",
        "std::vector<int> all = {1, 2};",
        "cudaStream_t stream;",
        "class Timer { cudaEvent_t begin; public: void start() {} };",
        "#include <vector>",
        '#include "helper_cuda.h"',
    ],
)
def test_what_belongs_to_the_host_goes(text):
    assert device_half(text).strip() == ""


def test_lines_stay_where_they_are():
    text = "int a;\nvoid host()\n{\n}\n__global__ void k() {}\n"
    assert device_half(text).splitlines()[4] == "__global__ void k() {}"


def test_a_file_of_kernels_alone_is_left_as_it_is():
    assert not has_host_code(list(tokens("__global__ void k(int domain) { x << 3; }")))
    assert has_host_code(list(tokens("int main() {}"))) and has_host_code(
        list(tokens("k<<<1,2>>>()"))
    )


def test_a_kernel_of_a_program_is_checked():
    path = PROGRAMS / "vector_add.cu"
    a, b, c = np.arange(100, dtype=np.float32), np.ones(100, np.float32), np.zeros(100, np.float32)
    report = Kernel(path, "vector_add").check(1, 128, a, b, Out(c), 100)
    assert report.ok and (c == a + 1).all()
    (finding,) = Kernel(path, "vector_add").check(1, 128, a, b[:99], Out(c), 100).findings
    lines = path.read_text().splitlines()
    assert finding.array == "b" and "c[i] = a[i] + b[i];" in lines[finding.line - 1]


@pytest.mark.second
@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("matrix_product", "product<8>"),
        ("reduction", "sum"),
        ("histogram", "histogram"),
        ("saxpy", "saxpy"),
        ("dot_product", "dot"),
    ],
)
def test_kernels_of_programs_compile_by_themselves(name, kernel):
    found = Kernel(PROGRAMS / f"{name}.cu", kernel)
    module = found._module(checked=True)
    assert module.path.exists()
