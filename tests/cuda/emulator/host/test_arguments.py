"""What a kernel is called with: copied once, by the host, or not at all where it is a reference."""

import pytest

from tests.cuda.emulator.host.running import finding, ran

pytestmark = pytest.mark.second
HEAD = "#include <cstdio>\n"

# Copies and destructions are those of the host: of the variable, and of the one that a launch hands
# over, as nvcc's stub does.  cudaLaunchKernel takes bytes.
COUNTED = """
static int copies, ends;
struct Count {
    int *n;
    Count() { cudaMallocManaged(&n, sizeof *n); *n = 0; }
    Count(const Count &other) : n(other.n) { copies++; }
    ~Count() { ends++; }
    __device__ void add(int by) { atomicAdd(n, by); }
};
template <class T> __global__ void add(T count, int by, T *none) {
    if (threadIdx.x == 3) return;
    __syncthreads();
    count.add(by);
}
int main() {
    int before, first;
    {
        Count count;
        before = ends;
        add<<<2, 33>>>(count, 2, (Count *)nullptr);
        first = copies;
        CALL
        printf("%d: %d copies, %d ends", *count.n, first, ends - before);
    }
    printf(", %d of all\\n", ends);
}
"""
BY_ADDRESS = """
        int by = 1;
        Count *none = nullptr;
        void *arguments[] = {&count, &by, &none};
        cudaLaunchKernel((const void *)add<Count>, 1, 10, arguments);"""


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(
    ("call", "printed"),
    [("", "128: 1 copies, 1 ends, 2 of all\n"), (BY_ADDRESS, "137: 1 copies, 1 ends, 2 of all\n")],
    ids=["by name", "by address"],
)
def test_no_thread_copies_or_destroys_an_argument(call, printed, checked):
    done, out, err = ran(HEAD + COUNTED.replace("CALL", call), checked=checked)
    assert (out, err) == (printed, "") and done.status == 0 and not done.notes
    assert all(f.note for report in done.reports for f in report.findings)


SHAPES = """
#include <string>
#include <vector>
struct Assigned { int a, b; void operator=(const Assigned &o) { a = o.a; } };  // goes by its value
struct Large { double x[5]; Large() {} Large(const Large &o) { last = o.last + 10; } double last; };
struct Named { std::string name; float *x; std::vector<int> none; };
struct Base { virtual __device__ int id() const { return 1; } virtual ~Base() {} int n; };
struct Child : Base { __device__ int id() const override { return 2; } };
__global__ void mixed(Assigned a, Large l, Named n, float *y, dim3 d) {
    if (threadIdx.x == 0) y[blockIdx.x] = a.a + a.b + l.last + n.x[1] + d.y;
}
__global__ void plain(Child c, const int n, float *y) { y[2] = c.n + n + sizeof(c); }
int main() {
    float *y, *x;
    cudaMallocManaged(&y, 3 * sizeof *y);
    cudaMallocManaged(&x, 2 * sizeof *x);
    x[1] = 0.5f;
    Assigned a{1, 2};
    Large l;
    l.last = 10;
    Named n{"a name that is too long to lie within the string itself", x, {1, 2, 3}};
    Child c;
    c.n = 3;
    mixed<<<2, 40>>>(a, l, n, y, dim3(1, 100));
    plain<<<1, 1>>>(c, 4, y);
    cudaDeviceSynchronize();
    printf("%g %g %d %s\\n", y[0], y[1], int(y[2]) - 7 == sizeof c, n.name.substr(0, 6).c_str());
}
"""


@pytest.mark.parametrize("checked", [True, False])
def test_arguments_of_many_shapes(checked):
    done, out, err = ran(HEAD + SHAPES, checked=checked)
    assert (out, err) == ("123.5 123.5 1 a name\n", "")  # 1 + 2, 10 + 10 of one copy, 0.5, 100
    assert done.ok and done.status == 0 and not done.notes


REFERENCES = """
struct Pair { int a, b; };
__global__ void up(int &x, int by = 1) { atomicAdd(&x, by); }
__global__ void swap(Pair &p) { int a = p.a; p.a = p.b; p.b = a; }
template <class T> __global__ void sum(const T &a, T b, T (&out)[2]) { out[0] = a + b; out[1] = b; }
struct Three { int of[2]; };
int main() {
    int *x, by = 3;
    Pair *p;
    Three *t;
    cudaMallocManaged(&x, sizeof *x);
    cudaMallocManaged(&p, sizeof *p);
    cudaMallocManaged(&t, sizeof *t);
    *x = 1, *p = {4, 5};
    up<<<2, 3>>>(*x, by);
    swap<<<1, 1>>>(p[0]);
    sum<int><<<1, 1>>>(*x, by, t->of);
    void *arguments[] = {&x, &by};
    cudaLaunchKernel((const void *)up, dim3(1), dim3(2), arguments);
    cudaDeviceSynchronize();
    printf("%d %d %d %d %d\\n", *x, p->a, p->b, t->of[0], t->of[1]);
}
"""


@pytest.mark.parametrize("checked", [True, False])
def test_a_reference_is_the_object_of_the_launch(checked):
    done, out, err = ran(HEAD + REFERENCES, checked=checked)
    assert (out, err) == ("25 5 4 22 3\n", "") and done.ok and done.status == 0


@pytest.mark.parametrize("parameter", ["int &x", "const int &x"])
def test_a_reference_to_a_variable_of_the_host_is_found(parameter):
    """nvcc hands over the address, which a kernel may not use."""
    done, _, _ = ran(f"""{HEAD}__global__ void k({parameter}, int *y) {{ y[0] = x + 1; }}
int main() {{
    int n = 1, *y;
    cudaMalloc(&y, sizeof *y);
    k<<<1, 1>>>(n, y);
    return cudaDeviceSynchronize() == cudaSuccess;
}}""")
    _, found = finding(done)
    assert found.kind == "out-of-bounds" and "memory of the host" in found.message
    assert not done.ok and done.status == 0


def test_an_index_behind_a_reference_is_found():
    done, _, _ = ran(f"""{HEAD}__global__ void k(int &x) {{ (&x)[threadIdx.x] = 1; }}
int main() {{
    int *x;
    cudaMallocManaged(&x, 3 * sizeof *x);
    k<<<1, 4>>>(*x);
}}""")
    _, found = finding(done)
    assert (found.kind, found.array, found.index) == ("out-of-bounds", "x", 3)


def test_memory_behind_an_argument_with_a_destructor_is_checked():
    text = HEAD + COUNTED.replace("CALL", "").replace("atomicAdd(n, by)", "n[0] += by")
    done, _, _ = ran(text)
    mistakes = [f for report in done.reports for f in report.findings if not f.note]
    assert {f.kind for f in mistakes} == {"race"} and not done.ok
