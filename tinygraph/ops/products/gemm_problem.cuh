// What every step of gemm.cuh stands on: the problem, its sums cut into steps, and accesses of four
// neighbours at once.
#pragma once

#include "prelude.cuh"

// Tensor cores, with GEMM_TILE=128 and T float: 19 for tf32, 16 for bf16 (gemm_mma.cuh); 0: none.
// Before sm_80 the same product is computed in float32, with the same grid.
#ifndef GEMM_MMA
#define GEMM_MMA 0
#endif
#if GEMM_MMA && (defined(TINYGRAPH_EMULATOR) || __CUDA_ARCH__ >= 800)
#define GEMM_ON_TENSOR_CORES
#endif

// What one launch computes.  Strides count elements; 0 repeats a matrix.
//
// The sum of each product runs over `sums` terms and K.  It may be cut into chunks, for a small C
// with a long sum: each chunk has a part of C of its own, which another kernel adds up.
template <typename T>
struct GemmProblem {
    const T* a;        // op(A) is M x K
    const T* b;        // op(B) is K x N
    T* c;              // (chunks, outer, inner, M, N), contiguous
    int M, N, K;
    int outer, inner;  // product z is (z / inner, z % inner)
    long long a_outer, a_inner, b_outer, b_inner;
    int sums;          // how many products are added up in each part of C
    long long a_sum, b_sum;
    int chunks = 1;

    __device__ long long products() const { return (long long)outer * inner; }
    __device__ long long parts() const { return products() * chunks; }
    __device__ const T* a_at(long long part) const
    {
        const long long z = part % products();
        return a + z / inner * a_outer + z % inner * a_inner;
    }
    __device__ const T* b_at(long long part) const
    {
        const long long z = part % products();
        return b + z / inner * b_outer + z % inner * b_inner;
    }
    __device__ T* c_at(long long part) const { return c + part * M * N; }
};

// threadIdx.x and blockIdx.x, asked for anew: what follows from them is worked out where it stands,
// and holds no register during a main loop.
#ifdef TINYGRAPH_EMULATOR
inline unsigned thread_now() { return threadIdx.x; }
inline unsigned block_now() { return blockIdx.x; }
#else
__device__ __forceinline__ unsigned thread_now()
{
    unsigned index;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}
__device__ __forceinline__ unsigned block_now()
{
    unsigned index;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
    return index;
}
#endif

// Row and column of C where the block's tile of TM x TN elements begins.
template <int TM, int TN, typename T>
__device__ __forceinline__ int2 tile_now(const GemmProblem<T> &p)
{
    const int tiles_across = (p.N + TN - 1) / TN, tile = block_now();
    return make_int2(tile / tiles_across * TM, tile % tiles_across * TN);
}

// The same value, in registers.  Else a compiler makes it anew wherever it is needed, out of
// parameters of the kernel and what was added to them: several instructions in the place of one.
template <typename T>
__device__ __forceinline__ T in_registers(T value)
{
#ifndef TINYGRAPH_EMULATOR
    if constexpr (sizeof(T) == 8) {
        asm("" : "+l"(value));
    } else {
        asm("" : "+r"(value));
    }
#endif
    return value;
}

constexpr int STEP = 16;  // numbers of the summed axis that a block takes at a time

// The steps of one chunk of a sum, one after the other:
//
//     for (SumSteps step(p, z); step.left; step.next())  ... numbers step.k .. of term step.term
//
// The last step of a term may have fewer than STEP numbers.  A sum has less than 2^31 steps.
struct SumSteps {
    int left;     // with this one
    int term, k;  // where this one begins
    int K;

    __device__ __forceinline__ SumSteps(int sums, int K, int chunks, int chunk) : K(K)
    {
        const int per_term = (K + STEP - 1) / STEP;
        const int all = sums * per_term, each = (all + chunks - 1) / chunks;
        const int first = (int)min((long long)chunk * each, (long long)all);
        left = min(each, all - first);
        term = left ? first / per_term : 0;
        k = left ? first % per_term * STEP : 0;
    }
    template <typename T>
    __device__ __forceinline__ SumSteps(const GemmProblem<T> &p, long long part)
        : SumSteps(p.sums, p.K, p.chunks, (int)(part / p.products()))
    {
    }
    __device__ __forceinline__ void next()
    {
        --left;
        k += STEP;
        if (k >= K) k = 0, ++term;
    }
};

// Four neighbours in memory: one 16-byte access for float, two for double, else one by one.
template <typename T>
__device__ __forceinline__ void load_four(const T* from, T (&four)[4])
{
    for (int i = 0; i < 4; ++i) four[i] = from[i];
}
__device__ __forceinline__ void load_four(const float* from, float (&four)[4])
{
    const float4 v = *reinterpret_cast<const float4*>(from);
    four[0] = v.x, four[1] = v.y, four[2] = v.z, four[3] = v.w;
}
__device__ __forceinline__ void load_four(const double* from, double (&four)[4])
{
    const double2 low = *reinterpret_cast<const double2*>(from);
    const double2 high = *reinterpret_cast<const double2*>(from + 2);
    four[0] = low.x, four[1] = low.y, four[2] = high.x, four[3] = high.y;
}

template <typename T>
__device__ __forceinline__ void store_four(T* to, const T (&four)[4])
{
    for (int i = 0; i < 4; ++i) to[i] = four[i];
}
__device__ __forceinline__ void store_four(float* to, const float (&four)[4])
{
    *reinterpret_cast<float4*>(to) = make_float4(four[0], four[1], four[2], four[3]);
}
__device__ __forceinline__ void store_four(double* to, const double (&four)[4])
{
    *reinterpret_cast<double2*>(to) = make_double2(four[0], four[1]);
    *reinterpret_cast<double2*>(to + 2) = make_double2(four[2], four[3]);
}

// Whether every fourth element of every row of a matrix lies on a multiple of 16 bytes.
template <typename T>
__device__ __forceinline__ bool rows_aligned(const T* matrix, int row_length)
{
    return reinterpret_cast<unsigned long long>(matrix) % 16 == 0 &&
           row_length * sizeof(T) % 16 == 0;
}

// Four neighbours in registers, zero from `count` on.
template <typename T>
__device__ __forceinline__ void load_some(const T* from, int count, T (&four)[4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j) four[j] = j < count ? from[j] : T(0);
}

// Write four neighbours of a row of C, as far as they lie inside.
template <typename T, typename Epilogue>
__device__ __forceinline__ void write_four(const GemmProblem<T> &p, long long part, int row,
                                           int column, const T (&sum)[4], bool aligned,
                                           Epilogue epilogue)
{
    const int count = row < p.M ? p.N - column : 0;  // elements before the edge
    T* to = p.c_at(part) + (long long)row * p.N + column;
    if (aligned && count >= 4) {
        T four[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) four[j] = epilogue(sum[j], part, row, column + j);
        store_four(to, four);
    } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (j < count) to[j] = epilogue(sum[j], part, row, column + j);
    }
}
