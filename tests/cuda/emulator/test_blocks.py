"""How a block executes: threads and their places, barriers, early exits."""

import numpy as np
import pytest

from tests.cuda.emulator.launching import run
from tinygraph.cuda import InOut

WHO = """
__global__ void who(int* y) {
    int X = blockDim.x, Y = blockDim.y, Z = blockDim.z;
    long long block = ((long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * Y + threadIdx.y) * X + threadIdx.x;
    int* row = y + (block * (X * Y * Z) + thread) * 12;
    row[0] = blockIdx.x; row[1] = blockIdx.y; row[2] = blockIdx.z;
    row[3] = threadIdx.x; row[4] = threadIdx.y; row[5] = threadIdx.z;
    row[6] = gridDim.x; row[7] = gridDim.y; row[8] = gridDim.z;
    row[9] = X; row[10] = Y; row[11] = Z;
}"""


def three(extents):
    extents = (extents,) if isinstance(extents, int) else tuple(extents)
    return extents + (1,) * (3 - len(extents))


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        (1, 1),
        (1, 1024),
        (7, 33),
        ((3, 2), (5, 4)),
        ((2, 3, 4), (3, 5, 7)),
        ((1, 1, 5), (1, 1, 64)),
        ((2, 1, 3), (1, 1024)),
        ((4, 2), (32, 32)),
        ((1, 9), (8, 8, 16)),
    ],
)
def test_each_thread_knows_its_place(launch, grid, block):
    (gx, gy, gz), (x, y, z) = three(grid), three(block)
    out = np.full((gz, gy, gx, z, y, x, 12), -1, np.int32)
    launch(WHO, grid, block, out)
    at = np.indices((gz, gy, gx, z, y, x))
    expected = np.empty_like(out)
    for column, axis in enumerate([2, 1, 0, 5, 4, 3]):
        expected[..., column] = at[axis]
    expected[..., 6:] = [gx, gy, gz, x, y, z]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("grid", [200_000, (1, 65535), (2, 1, 65535)])
def test_grids_of_many_blocks(grid):
    x, y, z = three(grid)
    seen = np.zeros(x * y * z, np.int32)
    run(
        "__global__ void many(int* seen) { "
        "seen[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] += 1; }",
        grid,
        1,
        seen,
    )
    assert (seen == 1).all()


def test_millions_of_blocks():
    last = np.zeros(3, np.int64)
    run(
        """__global__ void last(long long* y) {
        long long block = (long long)blockIdx.y * gridDim.x + blockIdx.x;
        if (block == 3LL * gridDim.x - 1) { y[0] = block; y[1] = blockIdx.x; y[2] = blockIdx.y; }
        }""",
        (500_000, 3),
        1,
        last,
    )
    assert last.tolist() == [1_499_999, 499_999, 2]


# ---- barriers ----------------------------------------------------------------------------------

ROTATE = """
__global__ void rotate(const int* x, int* y, int rounds) {
    __shared__ int ring[1024];
    const int t = threadIdx.x, n = blockDim.x, b = blockIdx.x * n;
    ring[t] = x[b + t];
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        int next = ring[(t + 1) % n];
        __syncthreads();
        ring[t] = next;
        __syncthreads();
    }
    y[b + t] = ring[t];
}"""


@pytest.mark.parametrize("block", [1, 2, 31, 32, 33, 100, 256, 1023, 1024])
def test_barriers_in_a_loop(launch, block):
    x = np.random.default_rng(block).integers(-99, 99, (3, block)).astype(np.int32)
    y = np.zeros_like(x)
    launch(ROTATE, 3, block, x, y, 7)
    np.testing.assert_array_equal(y, np.roll(x, -7, axis=1))


def test_blocks_pass_different_numbers_of_barriers(launch):
    """A trip count that depends on the block is uniform within it."""
    rounds = """
    __global__ void rounds(int* y) {
        __shared__ int total;
        if (threadIdx.x == 0) total = 0;
        for (int r = 0; r <= blockIdx.x; r++) {
            __syncthreads();
            if (threadIdx.x == (unsigned)r) total += r + 1;
        }
        __syncthreads();
        y[blockIdx.x * blockDim.x + threadIdx.x] = total;
    }"""
    y = np.zeros((9, 40), np.int32)
    launch(rounds, 9, 40, y)
    b = np.arange(1, 10)
    np.testing.assert_array_equal(y, np.tile((b * (b + 1) // 2)[:, None], (1, 40)))


VOTES = """
__global__ void votes(const int* x, int* y, int rounds) {
    const int n = blockDim.x;
    for (int r = 0; r < rounds; r++) {
        int p = x[r * n + threadIdx.x];
        int* row = y + (r * n + threadIdx.x) * 3;
        row[0] = __syncthreads_count(p);
        row[1] = __syncthreads_and(p);
        row[2] = __syncthreads_or(p);
    }
}"""


@pytest.mark.parametrize("block", [1, 33, 128, 1024])
def test_barriers_that_vote(launch, block):
    rng = np.random.default_rng(block)
    share = np.array([0, 1, 0.5, 0.02, 0.98, 0, 1])[:, None]
    x = np.where(
        rng.random((7, block)) < share, rng.choice([1, 2, -1, 256, 1 << 31 - 1], (7, block)), 0
    ).astype(np.int32)
    y = np.full((7, block, 3), -1, np.int32)
    launch(VOTES, 1, block, x, y, 7)
    true = x != 0
    np.testing.assert_array_equal(y[..., 0], np.tile(true.sum(1)[:, None], (1, block)))
    np.testing.assert_array_equal(y[..., 1] != 0, np.tile(true.all(1)[:, None], (1, block)))
    np.testing.assert_array_equal(y[..., 2] != 0, np.tile(true.any(1)[:, None], (1, block)))


def test_a_vote_counts_the_threads_that_are_left():
    """As on a GPU since Volta, who has left the kernel is not waited for."""
    y = np.zeros(40, np.int32)
    run(
        """__global__ void left(int* y) {
        if (threadIdx.x % 4 == 3) return;
        y[threadIdx.x] = __syncthreads_count(1); }""",
        1,
        40,
        y,
    )
    np.testing.assert_array_equal(y, np.where(np.arange(40) % 4 == 3, 0, 30))


def test_early_exits_without_barriers(launch):
    y = np.zeros(5 * 100, np.float32)
    launch(
        """__global__ void early(float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        if (i % 3 == 0) { y[i] = 1; return; }
        for (int k = 0; k < i % 7; k++) if (k == 5) { y[i] = 2; return; }
        y[i] = 3; }""",
        4,
        128,
        y,
        y.size,
    )
    i = np.arange(500)
    np.testing.assert_array_equal(y, np.where(i % 3 == 0, 1, np.where(i % 7 == 6, 2, 3)))


def test_whole_blocks_leave_before_a_barrier(launch):
    y = np.zeros((6, 70), np.int32)
    launch(
        """__global__ void whole(int* y) {
        __shared__ int s[70];
        if (blockIdx.x % 2) return;
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        y[blockIdx.x * 70 + threadIdx.x] = s[69 - threadIdx.x]; }""",
        6,
        70,
        InOut(y),
    )
    expected = np.where((np.arange(6) % 2 == 0)[:, None], np.arange(69, -1, -1), 0)
    np.testing.assert_array_equal(y, expected)


# ---- what a thread keeps while others run ------------------------------------------------------

KEEP = """
__global__ void keep(const double* x, double* y) {
    __shared__ double box[64];
    double d[12]; float f[12]; long long n[6];
    #pragma unroll
    for (int i = 0; i < 12; i++) { d[i] = x[threadIdx.x] * (i + 1); f[i] = threadIdx.x + 0.5f * i; }
    #pragma unroll
    for (int i = 0; i < 6; i++) n[i] = threadIdx.x * 1000003LL + i;
    #pragma unroll
    for (int i = 0; i < 12; i++) {
        box[threadIdx.x] = d[i];
        __syncthreads();
        d[i] += box[63 - threadIdx.x];
        f[i] = f[i] * 2 + __shfl_xor_sync(0xffffffffu, f[i], 1);
        n[i / 2] += i;
        __syncthreads();
    }
    double sum = 0;
    #pragma unroll
    for (int i = 0; i < 12; i++) sum += d[i] * (i + 1) + f[i] + n[i / 2];
    y[threadIdx.x] = sum;
}"""


def test_registers_survive_barriers_and_shuffles(launch):
    """Sums, floats and 64-bit integers that live across 36 switches of the fiber."""
    x, y, t = np.arange(64.0) ** 2, np.zeros(64), np.arange(64)
    launch(KEEP, 1, 64, x, y)
    expected = np.zeros(64)
    n = [t * 1000003 + i + (2 * i) + (2 * i + 1) for i in range(6)]
    for i in range(12):
        d = (x + x[::-1]) * (i + 1)
        f = 2 * (t + 0.5 * i) + ((t ^ 1) + 0.5 * i)
        expected += d * (i + 1) + f + n[i // 2]
    np.testing.assert_array_equal(y, expected)


def test_threads_wait_at_different_depths_of_recursion(launch):
    """The barrier lies in a loop of main; each thread has been elsewhere on its stack before."""
    deep = """
    __device__ int depth(int n) {
        int here[16];
        for (int i = 0; i < 16; i++) here[i] = n + i;
        return n == 0 ? here[15] - 15 : here[0] + depth(n - 1);
    }
    __device__ __noinline__ int meet(int* s, int value) {
        s[threadIdx.x] = value;
        __syncthreads();
        int other = s[(threadIdx.x + 1) % blockDim.x];
        __syncthreads();
        return other;
    }
    __global__ void deep(int* y) {
        __shared__ int s[96];
        int value = 0;
        for (int r = 0; r < 3; r++) value = meet(s, value + depth(threadIdx.x % 50 + r));
        y[threadIdx.x] = value;
    }"""
    y, t = np.zeros(96, np.int32), np.arange(96)
    launch(deep, 1, 96, y)
    value = np.zeros(96, int)
    for r in range(3):
        n = t % 50 + r
        value = np.roll(value + n * (n + 1) // 2, -1)
    np.testing.assert_array_equal(y, value)


@pytest.mark.parametrize("block", [(1024,), (2, 512), (16, 8, 8)])
def test_a_tree_sum_of_1024_threads(launch, block):
    tree = """
    __global__ void tree(const double* x, double* y) {
        __shared__ double s[1024];
        int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        s[t] = x[t];
        for (int half = 512; half; half /= 2) {
            __syncthreads();
            if (t < half) s[t] += s[t + half];
        }
        if (t == 0) *y = s[0];
    }"""
    x, y = np.arange(1024.0), np.zeros(1)
    launch(tree, 1, block, x, y)
    assert y[0] == 1023 * 1024 / 2
