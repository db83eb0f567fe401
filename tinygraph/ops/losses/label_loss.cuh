// What losses of labels share: the sum of single losses, and how many labels count.
//
// One block does all of it where its threads suffice; else each block leaves a partial sum, and
// sum_of_partials (losses.cu) adds these up.  Whichever comes last divides: how many labels count is
// known on the GPU alone, and nothing waits for it.
// Deterministic: sums are taken in a fixed order (reduce.cuh).

#pragma once

#include "reduce.cuh"

// `sum` and `count` of each thread of a block of BLOCK threads; sums (gridDim.x) T out, counts
// (gridDim.x) int64 out.
// numpy: counts = count.sum(); sums = sum.sum() / (counts if divides else 1)
template <int BLOCK, typename T>
__device__ __forceinline__ void leave_sum(T sum, long long count, T* sums, long long* counts,
                                          int divides)
{
    __shared__ T scratch[BLOCK / 32];
    __shared__ long long count_scratch[BLOCK / 32];
    sum = reduce_group<Sum, BLOCK>(sum, scratch);
    count = reduce_group<Sum, BLOCK>(count, count_scratch);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = divides ? sum / static_cast<T>(count) : sum;  // 0 / 0 is NaN
        counts[blockIdx.x] = count;
    }
}
