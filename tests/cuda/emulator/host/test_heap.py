"""`malloc` and `new` in kernels: the heap of the device, under the checker and without it."""

import pytest

from tests.cuda.emulator.host.running import PROGRAMS, finding, ran

pytestmark = pytest.mark.second
LISTS = PROGRAMS / "linked_lists.cu"
SOURCE = LISTS.read_text().splitlines()


@pytest.mark.parametrize("checked", [True, False])
def test_memory_of_the_heap_lives_until_it_is_given_back(checked):
    done, out, err = ran(LISTS, checked=checked)
    assert (out, err) == ("0 wrong, no error\n", "") and done.ok and not done.notes


@pytest.mark.parametrize(
    ("which", "kind", "words"),
    [
        ("1", "out-of-bounds", "write of 4 bytes on the heap of the device"),
        ("2", "out-of-bounds", "write of 4 bytes on the heap of the device"),
        ("4", "out-of-bounds", "or that were given back"),
        ("5", "out-of-bounds", "which was given back already"),
        ("6", "uninitialized", "of the heap that nobody has written"),
        ("7", "out-of-bounds", "which neither malloc nor new has given to a kernel"),
    ],
)
def test_mistakes_with_the_heap_are_found_at_their_line(which, kind, words):
    done, _, _ = ran(LISTS, which)
    report, found = finding(done)
    assert report.kernel == "mistake" and found.kind == kind and words in found.message
    assert f"which == {which}" in SOURCE[found.line - 1]


def test_a_heap_that_is_full_gives_null():
    text = """#include <cstdio>
__global__ void fill(int *out) { while (malloc(1 << 18)) ++*out; }
int main() {
    int *out;
    cudaMallocManaged(&out, sizeof(int));
    *out = 0;
    cudaDeviceSetLimit(cudaLimitMallocHeapSize, 4 << 20);
    fill<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    printf("%d", *out);
}"""
    done, out, _ = ran(text)
    assert done.ok and 4 <= int(out) <= 16  # 4 MiB hold 16 pieces at most


def test_the_host_cannot_copy_from_the_heap():
    text = """#include <cstdio>
__device__ int *place;
__global__ void take() { place = new int(3); }
int main() {
    int *p, x;
    take<<<1, 1>>>();
    cudaMemcpyFromSymbol(&p, place, sizeof p);
    printf("%s", cudaGetErrorName(cudaMemcpy(&x, p, 4, cudaMemcpyDeviceToHost)));
}"""
    _, out, err = ran(text)
    assert out == "cudaErrorInvalidValue" and "which kernels alone may touch" in err


def test_objects_with_virtual_functions():
    text = """#include <cstdio>
#include <new>
struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    int side;
    __device__ Square(int side) : side(side) {}
    __device__ int area() const override { return side * side; }
};
const char *beside = "a variable of the host";
__global__ void areas(int *out) {
    __shared__ alignas(8) char place[sizeof(Square)];
    __shared__ Shape *shared;
    if (threadIdx.x == 0) shared = new (place) Square(10);
    __syncthreads();
    Shape *own = new Square(threadIdx.x);
    out[threadIdx.x] = own->area() + shared->area();
    delete own;
}
int main() {
    int *out, sum = 0;
    cudaMallocManaged(&out, 32 * sizeof(int));
    areas<<<1, 32>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 32; i++) sum += out[i];
    printf("%d %c", sum, beside[0]);
}"""
    done, out, _ = ran(text)
    assert done.ok and out == f"{sum(i * i for i in range(32)) + 32 * 100} a"


def test_memory_of_the_heap_is_given_back_once_also_without_the_checker():
    text = """#include <cstdio>
__global__ void twice() {
    int *p = (int *)malloc(8);
    free(p);
    free(p);
}
int main() {
    twice<<<1, 1>>>();
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}"""
    done, out, _ = ran(text, checked=False)
    (note,) = done.notes
    assert out == "cudaErrorIllegalAddress" and "which was given back already at" in note
    assert ":5: free(p);. Way out: give back once what malloc or new of a kernel gave" in note


@pytest.mark.second
@pytest.mark.parametrize("checked", [True, False])
def test_new_of_the_host_in_a_program_that_needs_nothing_else_of_the_library(checked):
    """It is not linked with it then, and nobody but us defines the operators."""
    text = """#include <cstdio>
struct Pair { int a, b; };
__global__ void k(float *x) { x[threadIdx.x] = threadIdx.x; }
int main() {
    float *h = new float[32], *x;
    Pair *one = new Pair{1, 2}, *none = nullptr;
    cudaMalloc(&x, 32 * sizeof(float));
    k<<<1, 32>>>(x);
    cudaMemcpy(h, x, 32 * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g %d", h[31], one->b);
    delete[] h;
    delete one;
    delete none;
}"""
    done, out, err = ran(text, checked=checked)
    assert (out, err) == ("31 2", "") and done.ok and done.status == 0


@pytest.mark.second
def test_a_delete_of_memory_of_the_host_in_a_kernel_is_found():
    text = """#include <cstdio>
__global__ void k(float *x) { delete[] x; }
int main() {
    k<<<1, 1>>>(new float[32]);
    printf("%s", cudaGetErrorName(cudaDeviceSynchronize()));
}"""
    for checked in (True, False):
        done, out, _ = ran(text, checked=checked)
        assert out == "cudaErrorIllegalAddress" and not done.ok
