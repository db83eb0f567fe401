// linear: y = x @ w^T + b in one launch, and the sum over rows that the bias's gradient needs.
//
//   R I O      rows of x, features in, features out
//
// linear_forward
//   Threads own elements of y as those of matmul.cu do.  RELU=1: max(0, y), a NaN stays.
//   Grid (tiles of y, chunks); block 256.
//     x (R, I), w (O, I), b (O,)   T, read          y (chunks, R, O)   T, written
//   A long sum with a small result is cut into chunks, for several blocks.  The first one brings
//   the bias, column_sums adds them up.  RELU needs the whole sum: chunks = 1.
//   Memory: both operands are read along I, where both are contiguous; see gemm.cuh.
//   numpy:   y = x @ w.T + b
//
// column_sums
//   One block owns 32 columns and one chunk of rows; a thread sums every 8th row of its column.
//   Grid (columns / 32, chunks); block 256.
//     x (rows, columns)   T, read                   sums (chunks, columns)   T, written
//   Memory: a warp reads 32 neighbours of one row.  A long sum takes two launches: chunks of rows
//   first, for several blocks and for short sums, which round less; then the sums of the chunks.
//   numpy:   sums[i] = x[i * rows_per_chunk : (i + 1) * rows_per_chunk].sum(axis=0)
//
// gx = gy @ w and gw = gy^T @ x are launches of matmul.cu.
// Deterministic: fixed order, no atomics.
//
// operations of linear_forward: (2 * I + 1) * R * O
// issued operations of linear_forward<float>: (2 * I * GEMM_TILE * GEMM_TILE
//                                              * ceil_div(R, GEMM_TILE) * ceil_div(O, GEMM_TILE))
// operations of column_sums: rows * columns
//
// main loop of linear_forward<float> (GEMM_TILE=128, GEMM_MMA=19): at least 0.29 HMMA
// main loop of linear_forward<float> (GEMM_TILE=128, GEMM_MMA=16): at least 0.26 HMMA
// main loop of linear_forward<float> (GEMM_TILE=128): at least 0.86 FFMA, at least 12 bytes a load
//
// instances (GEMM_TILE=16): linear_forward<T> for T in float, double
// instances (GEMM_TILE=64): linear_forward<T> for T in float, double
// instances (GEMM_TILE=128): linear_forward<T> for T in float, double
// instances (GEMM_TILE=128, GEMM_MMA=19): linear_forward<float>
// instances (GEMM_TILE=128, GEMM_MMA=16): linear_forward<float>
// instances (GEMM_TILE=16, RELU=1): linear_forward<T> for T in float, double
#include "gemm.cuh"

#ifndef RELU
#define RELU 0
#endif

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
linear_forward(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b,
               T* __restrict__ y, int R, int O, int I, int chunks)
{
    const GemmProblem<T> p = {x, w, y, R, O, I, 1, 1, 0, 0, 0, 0, 1, 0, 0, chunks};
    gemm<T, false, true>(p, [=](T sum, long long chunk, int, int column) -> T {
        const T y = chunk == 0 ? sum + b[column] : sum;
        return RELU && y < 0 ? T(0) : y;
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
column_sums(const T* __restrict__ x, T* __restrict__ sums, int rows, int columns,
            int rows_per_chunk)
{
    __shared__ T partial[8][32];
    const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
    const int column = blockIdx.x * 32 + lane;
    const long long first = (long long)blockIdx.y * rows_per_chunk;
    const long long last = min(first + rows_per_chunk, (long long)rows);

    T sum = 0;
    if (column < columns)
        for (long long row = first + group; row < last; row += 8) sum += x[row * columns + column];
    partial[group][lane] = sum;
    for (int half = 4; half > 0; half /= 2) {  // a tree: always the same pairs
        __syncthreads();
        if (group < half) partial[group][lane] += partial[group + half][lane];
    }
    if (group == 0 && column < columns)
        sums[(long long)blockIdx.y * columns + column] = partial[0][lane];
}
