"""Where data may lie: shared memory of all kinds, constants, globals, locals."""

from itertools import pairwise

import numpy as np
import pytest

from tests.cuda.emulator.launching import check, kernel, run
from tinygraph.cuda import InOut
from tinygraph.cuda.emulator.books import checker_library

# ---- static shared memory ----------------------------------------------------------------------


def test_shared_arrays_of_a_template_are_one_for_each_instance(launch):
    source = """
    template <class T, int N> __device__ T turned(T value) {
        __shared__ T box[N];
        box[threadIdx.x] = value;
        __syncthreads();
        T other = box[N - 1 - threadIdx.x];
        __syncthreads();
        return other;
    }
    __global__ void mixed(float* y, double* z, int* bytes) {
        int t = threadIdx.x;
        y[t] = turned<float, 32>(t) + turned<float, 32>(10 * t);
        z[t] = turned<double, 32>(100 * t);
        bytes[t] = turned<char, 32>((char)t);
    }"""
    y, z, b = np.zeros(32, np.float32), np.zeros(32), np.zeros(32, np.int32)
    launch(source, 1, 32, y, z, b)
    t = np.arange(32)
    np.testing.assert_array_equal(y, 11 * (31 - t))
    np.testing.assert_array_equal(z, 100 * (31 - t))
    np.testing.assert_array_equal(b, 31 - t)


def test_shared_variables_of_a_helper_are_the_same_in_all_its_calls(launch):
    """A declaration is one variable: two callers see one memory."""
    source = """
    __device__ int* counter() { __shared__ int count[2]; return count; }
    __device__ void up(int by) { counter()[0] += by; }
    __global__ void calls(int* y) {
        if (threadIdx.x == 0) { counter()[0] = 5; up(2); up(3); counter()[1] = counter()[0] * 2; }
        __syncthreads();
        y[blockIdx.x * blockDim.x + threadIdx.x] = counter()[0] + counter()[1];
    }"""
    y = np.zeros(40, np.int32)
    launch(source, 2, 20, y)
    assert (y == 30).all()


def test_every_kind_of_declaration_in_one_kernel(launch):
    """Several a line, structs, 2-D and 3-D, pointers, alignment, macros, volatile, typedefs."""
    source = """
    #define ROWS 4
    #define TILE(n) (n)[ROWS][ROWS + 1]
    struct Cell { float value; int at[2]; double weight; };
    typedef float Row[8];
    namespace shapes { struct Point { short x, y; }; }
    using Pair = shapes::Point;
    __global__ void kinds(double* y) {
        __shared__ float a[4], b, c[2][3]; __shared__ int d;
        __shared__ Cell cells[3]; volatile __shared__ int flag; __shared__ volatile short small[5];
        __shared__ __align__(16) unsigned char bytes[17];
        __shared__ alignas(32) float wide[8]; __shared__ Row rows[2];
        __shared__ const float* pointer; __shared__ shapes::Point point; __shared__ Pair pairs[2];
        static __shared__ unsigned long long big; __shared__ struct { int first; char second; } own;
        __shared__
            float over_lines[2]
                            [3];
        __shared__ float cube[ROWS / 2][3][sizeof(double) > 4 ? 2 : 1];
        if (threadIdx.x == 0) {
            for (int i = 0; i < 4; i++) a[i] = i;
            b = 10; d = 20; flag = 30; small[4] = 40; big = 1ull << 40; bytes[16] = 50;
            for (int i = 0; i < 6; i++) c[i / 3][i % 3] = over_lines[i / 3][i % 3] = i;
            cells[2].value = 1.5f; cells[2].at[1] = 7; cells[2].weight = 0.25;
            for (int i = 0; i < 8; i++) wide[i] = rows[1][i] = i;
            pointer = &a[2]; point.x = 3; point.y = 4; pairs[1] = point;
            own.first = 6; own.second = 'c'; cube[1][2][1] = 9;
        }
        __syncthreads();
        int t = threadIdx.x;
        double all[] = {a[3], b, c[1][2], (double)d, cells[2].value + cells[2].at[1],
            cells[2].weight, (double)flag, (double)small[4], (double)bytes[16], wide[7], rows[1][7],
            *pointer, (double)(point.x + pairs[1].y), (double)big, (double)own.first,
            (double)own.second, over_lines[1][2], cube[1][2][1], (double)sizeof(c),
            (double)(sizeof(bytes) + sizeof(rows)), (double)((size_t)bytes % 16),
            (double)((size_t)wide % 32), (double)sizeof(cells) / sizeof(cells[0])};
        for (int i = 0; i < 23; i++) y[t * 23 + i] = all[i];
    }"""
    y = np.zeros((33, 23))
    launch(source, 1, 33, y)
    expected = [
        3,
        10,
        5,
        20,
        8.5,
        0.25,
        30,
        40,
        50,
        7,
        7,
        2,
        7,
        1 << 40,
        6,
        ord("c"),
        5,
        9,
        24,
        17 + 64,
        0,
        0,
        3,
    ]
    np.testing.assert_array_equal(y, np.tile(np.array(expected, float), (33, 1)))


def test_shared_memory_at_file_level(launch):
    source = """
    namespace { __shared__ int inner[32]; }
    __shared__ float box[32], other[2];
    __device__ float left() { return box[(threadIdx.x + 31) % 32]; }
    __global__ void file_level(float* y) {
        int t = threadIdx.x;
        box[t] = t * t; inner[t] = t;
        if (t < 2) other[t] = 100 * (t + 1);
        __syncthreads();
        y[t] = left() + inner[31 - t] + other[t % 2];
    }"""
    y, t = np.zeros(32, np.float32), np.arange(32)
    launch(source, 1, 32, y)
    np.testing.assert_array_equal(y, ((t - 1) % 32) ** 2 + 31 - t + 100 * (t % 2 + 1))


def test_each_block_has_shared_memory_of_its_own(launch):
    source = """
    __global__ void own(int* y) {
        __shared__ int s;
        if (threadIdx.x == 0) s = blockIdx.x;
        __syncthreads();
        y[blockIdx.x * blockDim.x + threadIdx.x] = s;
    }"""
    y = np.zeros((50, 64), np.int32)
    launch(source, 50, 64, y)
    np.testing.assert_array_equal(y, np.tile(np.arange(50)[:, None], (1, 64)))


def test_a_pointer_to_shared_memory_goes_to_a_helper(launch):
    source = """
    struct View { float* at; int pitch; __device__ float& operator()(int r, int c) {
        return at[r * pitch + c]; } };
    __device__ float diagonal(const float (&m)[4][4]) {
        return m[0][0] + m[1][1] + m[2][2] + m[3][3]; }
    template <class V> __device__ float corner(V view) { return view(3, 3) + view(0, 3); }
    __global__ void views(float* y) {
        __shared__ float m[4][4];
        int t = threadIdx.x;
        m[t / 4][t % 4] = t;
        __syncthreads();
        y[t] = diagonal(m) + corner(View{&m[0][0], 4});
    }"""
    y = np.zeros(16, np.float32)
    launch(source, 1, 16, y)
    assert (y == 0 + 5 + 10 + 15 + 15 + 3).all()


def test_lambdas_see_shared_memory_and_do_not_copy_it(launch):
    """It has static storage: [=] captures no copy of it, however the lambda is nested."""
    source = """
    template <class F> __device__ float called(F f, int i) { return f(i); }
    __global__ void captured(float* y) {
        __shared__ float tile[32], sum;
        extern __shared__ float rows[];
        const int t = threadIdx.x, n = blockDim.x;
        auto left = [=](int i) { return tile[(i + n - 1) % n] + rows[i]; };
        auto store = [=](int i) { tile[i] = i; if (i == 0) sum = 100; return 0.0f; };
        auto nested = [=](int i) { return called([=](int j) { return left(j) + sum; }, i); };
        auto by_reference = [&](int i) { return tile[i]; };
        { __shared__ float inner[32]; inner[t] = t; rows[t] = [=, n2 = n * 2] {
              return inner[t] * n2; }(); }
        called(store, t);
        __syncthreads();
        y[t] = called(nested, t) + called(by_reference, t);
    }"""
    y, t = np.zeros(32, np.float32), np.arange(32)
    launch(source, 1, 32, y, shared=128)
    np.testing.assert_array_equal(y, (t - 1) % 32 + t * 64 + 100 + t)


# ---- dynamic shared memory ---------------------------------------------------------------------


def test_dynamic_shared_memory_is_cut_into_parts(launch):
    source = """
    __global__ void parts(const float* x, double* y, int n) {
        extern __shared__ __align__(8) unsigned char pool[];
        double* sums = (double*)pool;
        float* values = (float*)(sums + n);
        char* marks = (char*)(values + n);
        int t = threadIdx.x;
        sums[t] = t; values[t] = x[t]; marks[t] = t % 7;
        __syncthreads();
        int other = (t + 5) % n;
        y[t] = sums[other] + values[other] + marks[other];
    }"""
    n = 77
    x, y, t = np.arange(n, dtype=np.float32) / 2, np.zeros(n), (np.arange(n) + 5) % n
    launch(source, 1, n, x, y, n, shared=13 * n)
    np.testing.assert_array_equal(y, t + t / 2 + t % 7)


def test_dynamic_shared_memory_of_a_type_beside_static_and_in_a_helper(launch):
    source = """
    template <class T> __device__ T* dynamic() { extern __shared__ float4 raw[]; return (T*)raw; }
    extern __shared__ float4 top[];
    __global__ void beside(float* y) {
        __shared__ float fixed[16];
        extern __shared__ float rows[][4];
        int t = threadIdx.x;
        rows[t][0] = t; rows[t][3] = 2 * t; fixed[t] = 3 * t;
        __syncthreads();
        int o = 15 - t;
        y[t] = dynamic<float>()[4 * o + 3] + rows[o][0] + fixed[o] + top[o].x;
    }"""
    y = np.zeros(16, np.float32)
    launch(source, 1, 16, y, shared=256)
    np.testing.assert_array_equal(y, 7.0 * (15 - np.arange(16)))


def test_the_largest_shared_memory():
    source = """
    __global__ void large(unsigned char* y, int n) {
        extern __shared__ unsigned char s[];
        for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i % 251;
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = s[n - 1 - i];
    }"""
    n = 227 * 1024
    y = np.zeros(n, np.uint8)
    run(source, 1, 256, y, n, shared=n)
    np.testing.assert_array_equal(y, (np.arange(n) % 251)[::-1])


# ---- variables of the module -------------------------------------------------------------------


def test_constants_of_all_shapes(launch):
    source = """
    struct Weight { float w; int k; };
    __constant__ float one = 1.5f, table[2][3] = {{1, 2, 3}, {4, 5, 6}};
    __constant__ Weight weights[] = {{0.5f, 7}, {0.25f, 8}};
    namespace deep { static __constant__ unsigned char bytes[4] = {9, 8, 7, 6}; }
    const __device__ int fixed[3] = {10, 20, 30};
    __device__ constexpr double pi = 3.0;
    __global__ void constants(double* y) {
        int t = threadIdx.x;
        y[t] = one + table[1][t] + weights[1].k * weights[0].w + deep::bytes[t] + fixed[t] + pi;
    }"""
    y = np.zeros(3)
    launch(source, 1, 3, y)
    np.testing.assert_array_equal(
        y, 1.5 + np.arange(4, 7) + 4 + np.array([9, 8, 7]) + np.array([10, 20, 30]) + 3
    )


GLOBALS = """
__device__ unsigned int ticket;
namespace inner { __device__ int history[4] = {7, 7, 7, 7}; }
__global__ void draw(int* y) {
    unsigned mine = atomicAdd(&ticket, 1u);
    if (mine < 4) inner::history[mine] = blockIdx.x;
    y[blockIdx.x] = mine;
}"""


def test_device_variables_live_as_long_as_the_kernel():
    """A second launch finds what the first one left, as in a module of CUDA."""
    y, again = np.zeros(8, np.int32), np.zeros(8, np.int32)
    draw = kernel(GLOBALS)
    draw(8, 1, y)
    draw(8, 1, again)
    assert sorted(y) == list(range(8)) and sorted(again) == list(range(8, 16))


def test_device_variables_under_the_checker():
    y = np.zeros(8, np.int32)
    report = check(GLOBALS.replace("draw", "drawn"), 8, 1, y)
    assert report.ok, report.text()
    assert sorted(y) == list(range(8))


# ---- what else a kernel does -------------------------------------------------------------------


def test_printf_reaches_the_standard_output(capfd):
    source = r"""
    __global__ void say(float x) {
        if (threadIdx.x % 2) return;
        printf("block %d thread %d: %g 100%%\n", blockIdx.x, threadIdx.x, x);
    }"""
    run(source, 2, 4, 1.5)
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == sorted(
        f"block {b} thread {t}: 1.5 100%" for b in range(2) for t in (0, 2)
    )
    report = check(source, 1, 1, 2.0)
    assert report.ok and capfd.readouterr().out == "block 0 thread 0: 2 100%\n"


def test_recursion_and_local_arrays(launch):
    source = """
    __device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
    __device__ int ackermann(int m, int n) {
        if (m == 0) return n + 1;
        return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
    }
    __global__ void recursive(int* y) {
        int counts[8] = {};
        int t = threadIdx.x;
        for (int i = 0; i < 20; i++) counts[(i * t) % 8] += i;
        int best = 0;
        for (int i = 1; i < 8; i++) if (counts[i] > counts[best]) best = i;
        y[t * 3] = fibonacci(t); y[t * 3 + 1] = ackermann(2, t % 5); y[t * 3 + 2] = counts[best];
    }"""
    y = np.zeros((16, 3), np.int32)
    launch(source, 1, 16, y)
    f = [0, 1]
    while len(f) < 16:
        f.append(f[-1] + f[-2])
    most = [np.bincount(np.arange(20) * t % 8, np.arange(20), 8).max() for t in range(16)]
    np.testing.assert_array_equal(y.T, [f, [2 * (t % 5) + 3 for t in range(16)], most])


@pytest.mark.second
def test_templates_lambdas_and_operators():
    source = """
    template <class T, int N> struct Stack {
        T items[N]; int count = 0;
        __device__ void push(T value) { items[count++] = value; }
        __device__ T pop() { return items[--count]; }
    };
    struct Complex { double re, im; };
    __device__ Complex operator*(Complex a, Complex b) {
        return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
    template <class F> __device__ double folded(const double* x, int n, F f) {
        double sum = 0; for (int i = 0; i < n; i++) sum = f(sum, x[i]); return sum; }
    template <class... A> __device__ double total(A... a) { return (a + ...); }
    enum class Mode : int { plain, twice };
    template <typename T, Mode M>
    __global__ void modern(const T* __restrict__ x, T* __restrict__ y, int n) {
        const int t = threadIdx.x;
        Stack<T, 4> stack;
        for (int i = 0; i < 4; i++) stack.push(x[(t + i) % n]);
        float scale = 2;
        auto sum = folded(x, n, [=](double a, double b) { return a + scale * b; });
        Complex z = Complex{x[t], 1} * Complex{0, 1};
        if constexpr (M == Mode::twice) sum *= 2;
        y[t] = total(stack.pop(), stack.pop()) + sum + z.im;
    }"""
    x, y = np.arange(8, dtype=np.float64), np.zeros(8)
    modern = kernel(source, "modern<double, Mode::twice>")
    for start in (modern, modern.check):
        y[:] = 0
        start(1, 8, x, y, 8)
        expected = x[(np.arange(8) + 3) % 8] + x[(np.arange(8) + 2) % 8] + 4 * x.sum() + x
        np.testing.assert_array_equal(y, expected)


def test_an_index_beyond_32_bits():
    """One byte at the far end of an array of 5 GB that is never touched elsewhere."""
    size = 5 * 1024**3
    x = np.zeros(size, np.uint8)  # pages come into being when they are touched
    run(
        """__global__ void far_end(unsigned char* x, long long n) {
        long long last = n - 1 - threadIdx.x;
        x[last] = 7; }""",
        1,
        2,
        x,
        size,
    )
    assert x[-1] == 7 and x[-2] == 7 and x[-3] == 0 and x[(size - 1) % 2**32] == 0


def test_wide_arguments_keep_their_bits(launch):
    y = np.zeros(4, np.int64)
    launch(
        """__global__ void wide(long long* y, long long a, unsigned long long b, double c,
                                 unsigned char d) {
        y[0] = a; y[1] = (long long)(b >> 1); y[2] = __double_as_longlong(c); y[3] = d; }""",
        1,
        1,
        y,
        -(2**62),
        2**64 - 2,
        -0.0,
        255,
    )
    assert y.tolist() == [-(2**62), 2**63 - 1, -(2**63), 255]


# ---- the checker's copies of arrays --------------------------------------------------------------


def test_copies_lie_a_terabyte_from_those_of_the_launch_before():
    """A launch that is looked at again has copies of its own while the first ones are there."""
    library, size, terabyte = checker_library(), 1 << 14, 1 << 40
    places = [library.tg_far_memory(size) for _ in range(20)]
    try:
        gaps = [high - low for low, high in pairwise(sorted(places))]
        assert min(gaps) >= terabyte
        library.tg_far_free(places[7], size)
        again = library.tg_far_memory(3 * size)
        assert again == places[7]
    finally:
        for place in places:
            library.tg_far_free(place, 3 * size)


# ---- accesses that begin in an array and end behind it -------------------------------------------

STRADDLING = {  # an access, the array, its size, the first element behind it, where it begins
    "a load": ("int4 v = *(int4*)(x + 200); y[0] = v.x + v.w;", "x", 202, "read", 200),
    "a store": ("*(int4*)(y + 8) = make_int4(1, 2, 3, 4);", "y", 10, "write", 8),
    "half of a pair": ("*(int2*)(z + 2) = make_int2(1, 2);", "z", 3, "write", 2),
    "a device variable": ("int4 v = *(int4*)(table + 4); y[0] = v.x + v.w;", "table", 6, "read", 4),
    "shared memory": ("*(int4*)(s + 4) = make_int4(1, 2, 3, 4);", "s", 6, "write", 4),
}


@pytest.mark.parametrize("name", STRADDLING)
def test_an_access_over_the_end_is_told_of_the_array_where_it_begins(name):
    statement, array, size, verb, begin = STRADDLING[name]
    source = f"""
    __device__ __align__(16) int table[6];
    __global__ void k(int* x, int* y, int* z) {{
        __shared__ __align__(16) int s[6];
        s[threadIdx.x] = 0;
        {statement}
    }}"""
    report = check(source, 1, 1, *(np.ones(n, np.int32) for n in (202, 10, 3)))
    (finding,) = report.findings
    assert (finding.kind, finding.array, finding.index) == ("out-of-bounds", array, size)
    assert f"{verb} of" in finding.message
    assert f"bytes from {array}[{begin}] on; " in finding.message
    assert f"{array} has {size} elements" in finding.message


def test_what_ends_with_the_array_is_right():
    source = """__global__ void k(int* x, int* y) {
        int4 v = *(int4*)(x + 196);
        *(int2*)(y + 8) = make_int2(v.x, v.w); }"""
    assert check(source, 1, 1, np.ones(200, np.int32), InOut(np.ones(10, np.int32))).ok
