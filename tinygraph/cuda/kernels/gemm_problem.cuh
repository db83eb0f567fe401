// What every step of gemm.cuh stands on: the problem, its sums cut into steps, and accesses of four
// neighbours at once.
#pragma once

#include "async_copy.cuh"
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

// The steps of one chunk of a sum.  Step t takes `size` numbers of k of one term; the last step of
// a term may take fewer.  A sum has less than 2^31 steps.
struct SumSteps {
    int first, last;  // last is beyond the end
    int per_term, size;

    __device__ SumSteps(int sums, int K, int size, int chunks, int chunk)
        : per_term((K + size - 1) / size), size(size)
    {
        const int all = sums * per_term, each = (all + chunks - 1) / chunks;
        first = (int)min((long long)chunk * each, (long long)all);
        last = (int)min((long long)first + each, (long long)all);
    }
    template <typename T>
    __device__ SumSteps(const GemmProblem<T> &p, int size, long long part)
        : SumSteps(p.sums, p.K, size, p.chunks, (int)(part / p.products()))
    {
    }
    __device__ int term(int step) const { return step / per_term; }
    __device__ int k(int step) const { return step % per_term * size; }
};

// Both operands through two panels each: loads of the next pair run during multiply(panel of A, of B)
// for this one.  A loader's load(panel, term, k) waits for nothing: one barrier a step ends both.
template <typename PanelA, typename PanelB, typename LoaderA, typename LoaderB, typename Multiply>
__device__ __forceinline__ void pipeline(PanelA (&a_panels)[2], PanelB (&b_panels)[2],
                                         const LoaderA &a, const LoaderB &b,
                                         const SumSteps &steps, Multiply multiply)
{
    const auto load = [&](int panel, int step) {
        if (step < steps.last) {
            a.load(a_panels[panel], steps.term(step), steps.k(step));
            b.load(b_panels[panel], steps.term(step), steps.k(step));
        }
        cp_async_commit_group();
    };
    load(0, steps.first);
    cp_async_wait_group<0>();
    __syncthreads();  // the first panels are complete
    int now = 0;
    for (int next = steps.first + 1; next <= steps.last; ++next, now = 1 - now) {
        load(1 - now, next);
        multiply(a_panels[now], b_panels[now]);
        cp_async_wait_group<0>();
        __syncthreads();  // the next panels are complete, and everyone has read these
    }
}

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

// One element of a panel, zero where it lies beyond an edge.
template <typename T>
__device__ __forceinline__ void copy_or_zero(T* panel, const T* from, bool inside)
{
    if (inside) {
        cp_async<sizeof(T)>(panel, from);
    } else {
        *panel = T(0);
    }
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
