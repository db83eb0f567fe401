"""Tensor cores and asynchronous copies on the emulator: mma.cuh and async_copy.cuh."""

import numpy as np
import pytest

from tinygraph.cuda import Kernel

# ---- tensor cores ------------------------------------------------------------------------------

PRODUCT_TF32 = """#include "mma.cuh"
__global__ void product(const float* A, const float* B, const float* C, float* D) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    unsigned a[4] = {float_to_tf32(A[g * 8 + t]), float_to_tf32(A[(g + 8) * 8 + t]),
                     float_to_tf32(A[g * 8 + t + 4]), float_to_tf32(A[(g + 8) * 8 + t + 4])};
    unsigned b[2] = {float_to_tf32(B[t * 8 + g]), float_to_tf32(B[(t + 4) * 8 + g])};
    int at = g * 8 + 2 * t;
    float d[4] = {C[at], C[at + 1], C[at + 64], C[at + 65]};
    mma_m16n8k8_tf32(d, a, b, d);
    D[at] = d[0]; D[at + 1] = d[1]; D[at + 64] = d[2]; D[at + 65] = d[3]; }"""

PRODUCT_BF16 = """#include "mma.cuh"
__global__ void product(const float* A, const float* B, const float* C, float* D) {
    __shared__ __align__(16) unsigned short As[16][16], Bs[16][8];
    int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    for (int i = lane; i < 256; i += 32) As[i / 16][i % 16] = floats_to_bf16x2(A[i], 0);
    for (int i = lane; i < 128; i += 32) Bs[i / 8][i % 8] = floats_to_bf16x2(B[i], 0);
    __syncwarp();
    unsigned a[4], b4[4];
    ldmatrix_x4(a, &As[lane % 16][lane / 16 * 8]);
    ldmatrix_x4_trans(b4, &Bs[lane % 16][0]);
    unsigned b[2] = {b4[0], b4[1]};
    int at = g * 8 + 2 * t;
    float c[4] = {C[at], C[at + 1], C[at + 64], C[at + 65]}, d[4];
    mma_m16n8k16_bf16(d, a, b, c);
    D[at] = d[0]; D[at + 1] = d[1]; D[at + 64] = d[2]; D[at + 65] = d[3]; }"""


@pytest.mark.parametrize(("source", "k", "bits"), [(PRODUCT_TF32, 8, 11), (PRODUCT_BF16, 16, 8)])
def test_mma_is_a_matrix_product(source, k, bits):
    """Integers exactly; reals to the rounding of the inputs; infinities pass."""
    rng = np.random.default_rng(3)
    kernel = Kernel(source, "product")
    limit = 2 ** (bits - 1)
    a = rng.integers(-limit, limit, (16, k)).astype(np.float32)
    b = rng.integers(-limit, limit, (k, 8)).astype(np.float32)
    c = rng.integers(-limit, limit, (16, 8)).astype(np.float32)
    d = np.zeros((16, 8), np.float32)
    kernel(1, 32, a, b, c, d)
    assert np.array_equal(d, a @ b + c)
    a, b = rng.normal(size=(16, k)).astype(np.float32), rng.normal(size=(k, 8)).astype(np.float32)
    kernel(1, 32, a, b, c, d)
    np.testing.assert_allclose(d, a @ b + c, 0, np.abs(a).max() * np.abs(b).max() * k / 2**bits)
    assert not np.array_equal(d, a @ b + c)  # the inputs were rounded
    a[3, 2] = np.inf
    kernel(1, 32, a, b, c, d)
    assert np.isinf(d[3]).all() and np.isfinite(np.delete(d, 3, 0)).all()


@pytest.mark.parametrize("source", [PRODUCT_TF32, PRODUCT_BF16])
def test_mma_runs_clean_under_the_checker(source):
    k = 8 if source == PRODUCT_TF32 else 16
    arrays = [np.ones(shape, np.float32) for shape in [(16, k), (k, 8), (16, 8), (16, 8)]]
    report = Kernel(source, "product").check(1, 32, *arrays)
    assert report.ok, report.text()


def test_ldmatrix_of_a_misaligned_row_is_found_at_the_call():
    source = PRODUCT_BF16.replace("As[lane % 16][lane / 16 * 8]", "As[lane % 16][lane / 16 * 4]")
    arrays = [np.ones(shape, np.float32) for shape in [(16, 16), (16, 8), (16, 8), (16, 8)]]
    report = Kernel(source, "product").check(1, 32, *arrays)
    line = 1 + source[: source.index("ldmatrix_x4(")].count("\n")
    assert ("misaligned", line) in [(f.kind, f.line) for f in report.findings], report.text()


def test_rounding_to_tf32_and_bf16():
    kernel = Kernel(
        """#include "mma.cuh"
    __global__ void rounded(const float* x, unsigned* tf32, unsigned* bf16, int n) {
        int i = threadIdx.x;
        if (i >= n) return;
        tf32[i] = float_to_tf32(x[i]); bf16[i] = floats_to_bf16x2(x[i], -x[i]); }""",
        "rounded",
    )
    x = np.random.default_rng(4).normal(0, 100, 60).astype(np.float32)
    x[:8] = [0, 1, 1 + 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, np.inf, -np.inf]
    tf32, bf16 = np.zeros(60, np.uint32), np.zeros(60, np.uint32)
    kernel(1, 64, x, tf32, bf16, 60)

    def nearest(bits, to_even):
        """x rounded to a mantissa of so many bits, in float64."""
        fraction, exponent = np.frexp(x[:60].astype(np.float64))
        scaled = fraction * 2.0**bits
        with np.errstate(invalid="ignore"):
            whole = np.rint(scaled) if to_even else np.trunc(scaled + np.copysign(0.5, scaled))
        return np.ldexp(whole, exponent - bits)

    def floats(values):
        """float64 as float32; what lies beyond the largest float is infinite."""
        with np.errstate(over="ignore"):
            return values.astype(np.float32)

    assert np.array_equal(tf32.view(np.float32), floats(nearest(11, False)))
    lower, upper = (bf16 << 16).view(np.float32), (bf16 & 0xFFFF0000).view(np.float32)
    expected = floats(nearest(8, True))
    assert np.array_equal(lower, expected) and np.array_equal(upper, -expected)


# ---- asynchronous copies -----------------------------------------------------------------------

PIPELINE = """#include "async_copy.cuh"
__global__ void pipeline(const float* x, float* y, int tiles) {
    __shared__ __align__(16) float tile[2][256];
    int i = threadIdx.x * WIDTH;
    cp_async<4 * WIDTH>(&tile[0][i], x + i);
    cp_async_commit_group();
    for (int n = 0; n < tiles; n++) {
        if (n + 1 < tiles) cp_async<4 * WIDTH>(&tile[(n + 1) % 2][i], x + (n + 1) * 256 + i);
        cp_async_commit_group();
        cp_async_wait_group<1>();
        __syncthreads();
        for (int j = 0; j < WIDTH; j++) y[n * 256 + i + j] = 2 * tile[n % 2][255 - i - j];
        __syncthreads();
    } }"""


@pytest.mark.parametrize("width", [1, 2, 4])
def test_asynchronous_copies_in_a_pipeline(width):
    x = np.random.default_rng(5).normal(size=(4, 256)).astype(np.float32)
    y = np.zeros_like(x)
    kernel = Kernel(PIPELINE, "pipeline", {"WIDTH": width})
    kernel(1, 256 // width, x, y, 4)
    assert np.array_equal(y, 2 * x[:, ::-1])
    report = kernel.check(1, 256 // width, x, y, 4)
    assert report.ok, report.text()


@pytest.mark.parametrize("wait", ["", "cp_async_wait_group<2>();"])
def test_a_missing_or_weak_wait_gives_wrong_numbers(wait):
    """Also without the checker: the copy is made as late as it may be."""
    source = PIPELINE.replace("cp_async_wait_group<1>();", wait)
    x = np.random.default_rng(6).normal(size=(4, 256)).astype(np.float32)
    y = np.zeros_like(x)
    kernel = Kernel(source, "pipeline", {"WIDTH": 4})
    kernel(1, 64, x, y, 4)
    assert not np.array_equal(y, 2 * x[:, ::-1])
    assert not kernel.check(1, 64, x, y, 4).ok


# ---- marks for the checker ---------------------------------------------------------------------

HANDOVER = """#include "tinygraph_check.cuh"
__global__ void handover(float* box, float* y) {
    if (blockIdx.x == 0) { box[threadIdx.x] = threadIdx.x; %s }
    else { %s y[threadIdx.x] = box[threadIdx.x]; } }"""


def test_marks_order_what_the_checker_cannot_see():
    """Two blocks, the second reads what the first wrote: a race, unless the kernel vouches."""
    box, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    bare = Kernel(HANDOVER % ("", ""), "handover").check(2, 32, box, y)
    assert {f.kind for f in bare.findings} == {"race"}
    marks = ("TG_HAPPENS_BEFORE(box);", "TG_HAPPENS_AFTER(box);")
    marked = Kernel(HANDOVER % marks, "handover").check(2, 32, box, y)
    assert marked.ok, marked.text()
