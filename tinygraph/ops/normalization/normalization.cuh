// What batch norm and layer norm share: mean and variance in one pass, and sums down columns.
//
// The mean of squares minus the square of the mean loses all digits where the mean is large.  So:
//
//     a thread     adds up d = x - shift and d^2, where shift is the first number that it meets;
//                  its squares about its own mean are sum of d^2 - (sum of d)^2 / count
//     a group      mean    = sum of count * mean / sum of count
//                  squares = sum of squares + count * (its mean - mean)^2
//
// Means are kept relative to one number of the data, the origin: they stay exact where all numbers
// are alike.  The groups of a group are put together by the same two sums, all in a fixed order.
//
// Source: Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American
// Statistician 37, 1983.

#pragma once

#include "long_sum.cuh"
#include "reduce.cuh"

template <typename T>
struct Moments {
    T count;
    T mean;     // relative to an origin that all who are put together share
    T squares;  // sum of (x - mean)^2
};

// The numbers that one thread meets, one after the other; shift is the first of them.
template <typename T>
struct Accumulator {
    T shift = 0;
    LongSum<T, 2> sums;  // of d and d^2

    __device__ __forceinline__ void add(T value)
    {
        const T d = value - shift;
        sums.add(d, d * d);
    }

    __device__ __forceinline__ Moments<T> moments(T origin) const
    {
        const T count = sums.count, sum = sums.value(0), squares = sums.value(1);
        if (count == T(0))
            return {T(0), T(0), T(0)};
        const T mean = sum / count;
        const T about_mean = squares - mean * sum;
        return {count, (shift - origin) + mean, about_mean < T(0) ? T(0) : about_mean};
    }
};

// `total` adds up one value of each thread of the group, and every thread gets the sum.
template <typename T, typename Total>
__device__ __forceinline__ Moments<T> combine_moments(const Moments<T>& own, Total total)
{
    const T count = total(own.count);
    const T mean = total(own.count * own.mean) / count;
    const T d = own.mean - mean;
    return {count, mean, total(own.squares + own.count * d * d)};
}

// Mean and deviation as they are applied.  The mean is the unevaluated sum of two numbers, for its
// own rounding would show in x - mean where the deviation is small beside it.
template <typename T>
struct Normalizer {
    T mean, remainder, inverse;  // inverse = 1 / sqrt(variance + eps)

    __device__ __forceinline__ T centre(T value) const { return (value - mean) - remainder; }
};

template <typename T>
__device__ __forceinline__ Normalizer<T> normalizer_of(T origin, T mean, T variance, T eps)
{
    Normalizer<T> n;
    n.mean = origin + mean;
    const T added = n.mean - origin;  // what of `mean` has entered the sum; the rest remains
    n.remainder = (origin - (n.mean - added)) + (mean - added);
    n.inverse = T(1) / sqrt(variance + eps);
    return n;
}

// statistics (3, n): means, remainders and inverses of n channels or rows.
template <typename T>
__device__ __forceinline__ Normalizer<T> load_normalizer(const T* statistics, long long i,
                                                         long long n)
{
    return {statistics[i], statistics[n + i], statistics[2 * n + i]};
}

template <typename T>
__device__ __forceinline__ void store_normalizer(T* statistics, long long i, long long n,
                                                 const Normalizer<T>& normalizer)
{
    statistics[i] = normalizer.mean;
    statistics[n + i] = normalizer.remainder;
    statistics[2 * n + i] = normalizer.inverse;
}

// ---- sums down columns ----------------------------------------------------------------------

// A block holds WIDTH columns: its thread t has members of column t % WIDTH.  Every thread gets the
// sum of its column.  `scratch` is an array of WIDTH * WARPS elements in shared memory.
template <int WIDTH, typename T>
__device__ __forceinline__ T sum_columns(T value, T* scratch)
{
    static_assert(WIDTH == 1 || WIDTH == 32, "one column, or one for each lane of a warp");
    if constexpr (WIDTH == 1) {
        return reduce_group<Sum, THREADS>(value, scratch);
    } else {
        __syncthreads();  // whoever still reads scratch from the last sum comes first
        scratch[threadIdx.x] = value;
        __syncthreads();
        const int column = threadIdx.x % WIDTH;
        T sum = scratch[column];
#pragma unroll
        for (int warp = 1; warp < WARPS; ++warp)
            sum += scratch[warp * WIDTH + column];
        return sum;
    }
}

// The blocks of a column leave a partial sum each, partials (columns, slices); a warp adds them.
template <typename T>
__device__ __forceinline__ T sum_of_slices(const T* partials, long long column, int slices)
{
    T sum = 0;
    for (int slice = threadIdx.x % 32; slice < slices; slice += 32)
        sum += partials[column * slices + slice];
    return reduce_warp<Sum>(sum);
}
