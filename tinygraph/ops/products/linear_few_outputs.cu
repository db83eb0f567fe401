// linear for few outputs: y = x @ w^T + b, where the rows of x are long and those of w are few.
//
//   R I OUTPUTS      rows of x, features in, features out; OUTPUTS is compiled in, at most 16
//
// The head of a classifier multiplies two numbers for each one that it reads: memory is what limits,
// and a tile of gemm.cuh, made for as many columns as rows, would be empty for the most part.  Here
// x is read once, 16 bytes at a time, straight into registers.
//
// linear_few_outputs
//   A warp owns 4 rows of x and 2048 of their features: lane i the features 4 * i ... of each 128.  It
//   holds 4 * OUTPUTS sums, and 4 numbers of w serve all four rows.
//   Grid (ceil(I / 2048), ceil(R / 32)); block 256.
//     x (R, I), w (OUTPUTS, I), b (OUTPUTS,) or null   T, read
//     y (ceil(I / 2048), R, OUTPUTS)                    T, written
//   The first chunk brings the bias; column_sums (linear.cu) adds the chunks.
//   Memory: a warp reads 512 neighbouring bytes of each row; w comes from L1, the same for all warps.
//   Where 4 does not divide I, or an array begins elsewhere, one number at a time.
//   sm_90, float, 10 outputs: 160 of 210 instructions of the loop are FFMA.
//   Deterministic: fixed order, no atomics.
//   numpy: y = x @ w.T + b
//
// operations of linear_few_outputs: (2 * I + (b > 0)) * R * OUTPUTS
//
// instances (OUTPUTS=10): linear_few_outputs<T> for T in float, double
#include "reduce.cuh"

#ifndef OUTPUTS
#define OUTPUTS 10
#endif

constexpr int ROWS = 4;             // of x, of a warp
constexpr int FEATURES = 2048;      // of a chunk

template <int COUNT, typename T>
struct __align__(COUNT == 1 ? sizeof(T) : 16) Neighbours {
    T of[COUNT];
};

template <int COUNT, typename T>
__device__ __forceinline__ Neighbours<COUNT, T> read(const T* from)
{
    return *reinterpret_cast<const Neighbours<COUNT, T>*>(from);
}

// The lane's part of the products of rows `x` and all rows of w, from feature `first` to `last`.
template <int COUNT, typename T>
__device__ __forceinline__ void add_products(T (&sums)[ROWS][OUTPUTS], const T* const (&x)[ROWS],
                                             const T* w, int I, int first, int last)
{
    for (int i = first + threadIdx.x % 32 * COUNT; i < last; i += 32 * COUNT) {
        Neighbours<COUNT, T> rows[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) rows[r] = read<COUNT>(x[r] + i);
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
            const Neighbours<COUNT, T> weights = read<COUNT>(w + (long long)o * I + i);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
#pragma unroll
                for (int j = 0; j < COUNT; ++j) sums[r][o] += rows[r].of[j] * weights.of[j];
            }
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 2 : 1)
linear_few_outputs(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b,
                   T* __restrict__ y, int R, int I)
{
    const int row0 = (blockIdx.y * WARPS + threadIdx.x / 32) * ROWS;
    if (row0 >= R) return;
    const int first = blockIdx.x * FEATURES, last = min(first + FEATURES, I);
    const T* rows[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rows[r] = x + (long long)min(row0 + r, R - 1) * I;
    const unsigned long long places =
        reinterpret_cast<unsigned long long>(x) | reinterpret_cast<unsigned long long>(w);
    T sums[ROWS][OUTPUTS] = {};
    if (I % 4 == 0 && places % 16 == 0)
        add_products<4>(sums, rows, w, I, first, last);
    else
        add_products<1>(sums, rows, w, I, first, last);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o) {
            const T sum = reduce_warp<Sum>(sums[r][o]);
            if (threadIdx.x % 32 != 0 || row0 + r >= R) continue;
            y[((long long)blockIdx.x * R + row0 + r) * OUTPUTS + o] =
                blockIdx.x == 0 && b ? sum + b[o] : sum;
        }
    }
}
