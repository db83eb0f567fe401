// The GEMM of step 3 on tensor cores: float32 in and out, products of tf32 or bf16 numbers.
//
//   GEMM_MMA = 19   tf32: 10 bits of mantissa, rounded to nearest, halves away from zero
//   GEMM_MMA = 16   bf16:  7 bits of mantissa, rounded to nearest even
//
// Sums are float32.  A block computes 128x128 elements and takes 16 of the summed axis in a step; a
// warp computes 64x32 of them, as 4x4 products of 16x8.  Two panels for each operand, as in step 3.
//
// Panels are stored panel[x][k], with rows of 20 floats.  ldmatrix moves 8 rows of 16 bytes: rows
// begin 5 times 16 bytes apart, so the eight lie in different banks.  It was made for 16-bit
// elements, but hands each lane 4 bytes of a row, which is one float: lane 4g + t gets number t of
// row g, and that is how mma.m16n8k8 wants its tf32 operands.  For bf16 the same floats are rounded
// and packed in pairs.  Slot 2t of the instruction then holds number t of a step, slot 2t+1 number
// t+4, in A as well as in B: a sum of 16 products in another order.
//
// Deterministic on one GPU: no atomics, the order of steps is fixed.  For sm_80 and later; before,
// gemm_pipelined computes the same product in float32 with the same grid.
//
// Source: PTX ISA, "Warp Level Matrix Instructions"; CUTLASS, "Efficient GEMM in CUDA".
#pragma once

#include "async_copy.cuh"
#include "gemm_problem.cuh"
#include "mma.cuh"

constexpr int MMA_TILE = 128, MMA_STEP = 16, MMA_PITCH = MMA_STEP + 4;

// The loader of a matrix, stored (X, K) if K_CONTIGUOUS, else (K, X).  Along k 16 bytes at once
// where rows begin on 16 bytes.  Along x one by one, turned on the way: neighbouring threads read
// neighbours, and four of them meet in each bank.
template <bool K_CONTIGUOUS>
struct MmaMatrix {
    const float* matrix;
    long long term;  // from one term of the sum to the next
    int K, X, x0;

    template <int ROWS, int PITCH>
    __device__ __forceinline__ void load(float (&panel)[ROWS][PITCH], int s, int k0) const
    {
        const float* from = matrix + s * term;
        if constexpr (K_CONTIGUOUS) {
            const bool aligned = rows_aligned(from, K);
#pragma unroll 1  // both at once, and registers spill
            for (int i = threadIdx.x; i < MMA_TILE * MMA_STEP / 4; i += THREADS) {
                const int x = i / (MMA_STEP / 4), k = i % (MMA_STEP / 4) * 4;
                const int count = x0 + x < X ? K - (k0 + k) : 0;  // elements before the edge
                const float* source = from + (long long)(x0 + x) * K + k0 + k;
                if (aligned && count >= 4) {
                    cp_async<16>(&panel[x][k], source);
                } else {
#pragma unroll 1
                    for (int j = 0; j < 4; ++j)
                        copy_or_zero(&panel[x][k + j], source + j, j < count);
                }
            }
        } else {
            const int x = threadIdx.x % MMA_TILE;
            const int rows = x0 + x < X ? K - k0 : 0;  // inside
#pragma unroll 2
            for (int k = threadIdx.x / MMA_TILE; k < MMA_STEP; k += THREADS / MMA_TILE)
                copy_or_zero(&panel[x][k], from + (long long)(k0 + k) * X + x0 + x, k < rows);
        }
    }
};

// 16 rows and 8 numbers of k, as mma wants A: [0] row g, number t; [1] row g + 8; [2], [3] number
// t + 4.  As two operands B: [0], [2] of the first 8 columns, [1], [3] of the others.
template <int ROWS, int PITCH>
__device__ __forceinline__ void load_fragment(unsigned (&d)[4], const float (&panel)[ROWS][PITCH],
                                              int x, int k)
{
    const int lane = threadIdx.x % 32;
    ldmatrix_x4(d, &panel[x + lane % 16][k + lane / 16 * 4]);
}

// 16x8 elements += 16 rows of A times 8 columns of B, 8 numbers of k.
struct Tf32 {
    static constexpr int FLOATS = 1;  // fragments of 8 numbers of k in one product
    static __device__ __forceinline__ void round(unsigned (&a)[4], const unsigned (&raw)[1][4])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = float_to_tf32(__uint_as_float(raw[0][i]));
    }
    static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                    const unsigned (&b)[2])
    {
        const float c[4] = {d[0], d[1], d[2], d[3]};
        mma_m16n8k8_tf32(d, a, b, c);
    }
};

// The same with 16 numbers of k.
struct Bf16 {
    static constexpr int FLOATS = 2;
    static __device__ __forceinline__ unsigned pair(unsigned lower, unsigned upper)
    {
        return floats_to_bf16x2(__uint_as_float(lower), __uint_as_float(upper));
    }
    static __device__ __forceinline__ void round(unsigned (&a)[4], const unsigned (&raw)[2][4])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = pair(raw[i / 2][i % 2], raw[i / 2][i % 2 + 2]);
    }
    static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                    const unsigned (&b)[2])
    {
        const float c[4] = {d[0], d[1], d[2], d[3]};
        mma_m16n8k16_bf16(d, a, b, c);
    }
};

static_assert(GEMM_MMA == 19 || GEMM_MMA == 16, "GEMM_MMA: 19 is tf32, 16 is bf16");
#if GEMM_MMA == 19
using Number = Tf32;
#else
using Number = Bf16;
#endif

template <int ROWS, int PITCH>
__device__ __forceinline__ void load_rounded(unsigned (&d)[4], const float (&panel)[ROWS][PITCH],
                                             int x, int k)
{
    unsigned raw[Number::FLOATS][4];
#pragma unroll
    for (int i = 0; i < Number::FLOATS; ++i) load_fragment(raw[i], panel, x, k + i * 8);
    Number::round(d, raw);
}

// Add the products of one pair of panels to the warp's 64x32 elements.
template <int ROWS_A, int PITCH_A, int ROWS_B, int PITCH_B>
__device__ __forceinline__ void mma_panels(const float (&a_panel)[ROWS_A][PITCH_A],
                                           const float (&b_panel)[ROWS_B][PITCH_B],
                                           float (&sum)[4][4][4])
{
    const int warp = threadIdx.x / 32, row = warp / 4 * 64, column = warp % 4 * 32;
#pragma unroll
    for (int k = 0; k < MMA_STEP; k += Number::FLOATS * 8) {
        unsigned b[4][2];
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            unsigned both[4];
            load_rounded(both, b_panel, column + j * 8, k);
            b[j][0] = both[0], b[j][1] = both[2];
            b[j + 1][0] = both[1], b[j + 1][1] = both[3];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            unsigned a[4];
            load_rounded(a, a_panel, row + i * 16, k);
#pragma unroll
            for (int j = 0; j < 4; ++j) Number::multiply(sum[i][j], a, b[j]);
        }
    }
}

// One tile of C: the sum over `steps`, then write(r, c, two) for two neighbours of row r of the
// tile at a time.  All threads of the block call it together, for one tile after the other.
template <typename LoaderA, typename LoaderB, typename Writer>
__device__ __forceinline__ void mma_tile(const LoaderA &a, const LoaderB &b, const SumSteps &steps,
                                         Writer write)
{
    __shared__ __align__(16) float a_panels[2][MMA_TILE][MMA_PITCH];
    __shared__ __align__(16) float b_panels[2][MMA_TILE][MMA_PITCH];
    float sum[4][4][4] = {};
    pipeline(a_panels, b_panels, a, b, steps,
             [&](const auto &a_panel, const auto &b_panel) { mma_panels(a_panel, b_panel, sum); });

    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float two[2] = {sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]};
            write(warp / 4 * 64 + i * 8 + g, warp % 4 * 32 + j * 8 + 2 * t, two);
        }
}

template <bool A_TRANSPOSED, bool B_TRANSPOSED, typename Epilogue>
__device__ void gemm_mma(const GemmProblem<float> &p, Epilogue epilogue)
{
    const int tiles_across = (p.N + MMA_TILE - 1) / MMA_TILE;
    const int row0 = blockIdx.x / tiles_across * MMA_TILE;
    const int column0 = blockIdx.x % tiles_across * MMA_TILE;

    for (long long z = blockIdx.y; z < p.parts(); z += gridDim.y) {
        const MmaMatrix<!A_TRANSPOSED> a = {p.a_at(z), p.a_sum, p.K, p.M, row0};
        const MmaMatrix<B_TRANSPOSED> b = {p.b_at(z), p.b_sum, p.K, p.N, column0};
        const SumSteps steps(p, MMA_STEP, z);
        mma_tile(a, b, steps, [&](int r, int c, const float (&two)[2]) {
            const int row = row0 + r, column = column0 + c;
            if (row >= p.M) return;
            float* to = p.c_at(z) + (long long)row * p.N + column;
#pragma unroll
            for (int j = 0; j < 2; ++j)
                if (column + j < p.N) to[j] = epilogue(two[j], z, row, column + j);
        });
    }
}
