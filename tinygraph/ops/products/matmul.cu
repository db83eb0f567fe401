// matmul: products of matrices, over batch axes, and summed over axes as backward needs it.
//
// One thread owns one element of one product (GEMM_TILE=16), 4x4 elements (64), or 8x8 (128; 4x4 of
// double); with GEMM_MMA, 19 for tf32 or 16 for bf16, a warp owns 64x32.
// Grid (tiles of c, products z); block 256.  The second axis of a grid ends at 65535: a block goes
// on at product z + gridDim.y.
//
//   a    TRANSPOSE_A ? (K, M) : (M, K) for each product    T, read; strides in elements, 0 repeats
//   b    TRANSPOSE_B ? (N, K) : (K, N) for each product    T, read
//   c    (chunks, outer, inner, M, N)                      T, written, or added to: accumulate
//
// Memory: tiles of A and B pass through shared memory; reads and writes are coalesced, 16 bytes for
// each thread where rows begin on 16 bytes (GEMM_TILE=64, 128).  gemm.cuh tells how.
// Deterministic: fixed order, no atomics.
// numpy:   c = np.einsum("zsmk,zskn->zmn", A, B) (+ c)
//
// operations of matmul: (2 * K * sums + accumulate) * M * N * outer * inner
// issued operations of matmul<float>: (2 * K * sums * outer * inner * GEMM_TILE * GEMM_TILE
//                                      * ceil_div(M, GEMM_TILE) * ceil_div(N, GEMM_TILE))
//
// main loop of matmul<float> (GEMM_TILE=128, GEMM_MMA=19): at least 0.29 HMMA, at least 12 bytes a load
// main loop of matmul<float> (GEMM_TILE=128, GEMM_MMA=16): at least 0.26 HMMA, at least 12 bytes a load
// main loop of matmul<float> (GEMM_TILE=128): at least 0.86 FFMA, at least 12 bytes a load,
//     at most 0 divisions
//
// instances (GEMM_TILE=16, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<T> for T in float, double
// instances (GEMM_TILE=16, TRANSPOSE_A=0, TRANSPOSE_B=1): matmul<T> for T in float, double
// instances (GEMM_TILE=16, TRANSPOSE_A=1, TRANSPOSE_B=0): matmul<T> for T in float, double
// instances (GEMM_TILE=64, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<T> for T in float, double
// instances (GEMM_TILE=64, TRANSPOSE_A=0, TRANSPOSE_B=1): matmul<T> for T in float, double
// instances (GEMM_TILE=64, TRANSPOSE_A=1, TRANSPOSE_B=0): matmul<T> for T in float, double
// instances (GEMM_TILE=128, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<T> for T in float, double
// instances (GEMM_TILE=128, TRANSPOSE_A=0, TRANSPOSE_B=1): matmul<T> for T in float, double
// instances (GEMM_TILE=128, TRANSPOSE_A=1, TRANSPOSE_B=0): matmul<T> for T in float, double
// instances (GEMM_TILE=128, GEMM_MMA=19, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<float>
// instances (GEMM_TILE=128, GEMM_MMA=19, TRANSPOSE_A=0, TRANSPOSE_B=1): matmul<float>
// instances (GEMM_TILE=128, GEMM_MMA=19, TRANSPOSE_A=1, TRANSPOSE_B=0): matmul<float>
// instances (GEMM_TILE=128, GEMM_MMA=16, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<float>
// instances (GEMM_TILE=128, GEMM_MMA=16, TRANSPOSE_A=0, TRANSPOSE_B=1): matmul<float>
// instances (GEMM_TILE=128, GEMM_MMA=16, TRANSPOSE_A=1, TRANSPOSE_B=0): matmul<float>
// instances (GEMM_TILE=16, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<T> for T in int, long long
// instances (GEMM_TILE=64, TRANSPOSE_A=0, TRANSPOSE_B=0): matmul<T> for T in int, long long
#include "gemm.cuh"

#ifndef TRANSPOSE_A
#define TRANSPOSE_A 0
#endif
#ifndef TRANSPOSE_B
#define TRANSPOSE_B 0
#endif

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
matmul(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int M, int N, int K,
       int outer, int inner, long long a_outer, long long a_inner, long long b_outer,
       long long b_inner, int sums, long long a_sum, long long b_sum, int chunks, int accumulate)
{
    const GemmProblem<T> p = {a, b, c, M, N, K, outer, inner, a_outer, a_inner, b_outer, b_inner,
                              sums, a_sum, b_sum, chunks};
    gemm<T, TRANSPOSE_A, TRANSPOSE_B>(p, [=](T sum, long long z, int row, int column) -> T {
        return accumulate ? c[(z * M + row) * N + column] + sum : sum;
    });
}
