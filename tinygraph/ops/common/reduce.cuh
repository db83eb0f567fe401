// Reductions in a fixed order: no atomics, so that two runs give the same bits.
//
// A group of GROUP threads (a power of two: one thread, a part of a warp, a warp, or a block of so
// many threads) reduces one value of each to a single one, which every thread of the group returns.
//
//     within a warp        exchanges with the lane at distance 16, 8, 4, 2, 1 (of fewer lanes, the
//                          last ones).  Both partners compute a + b or b + a, which is the same
//                          number: all lanes agree.
//     between the warps    lane 0 of each warp leaves its value in shared memory, and every thread
//                          combines these few in the order of the warps.  All read one address at
//                          a time, which is a broadcast and costs no bank conflict.
//
// A sum over a whole array takes two launches where it is large: each block sums what its threads
// own and writes one partial sum, then one block sums the partial sums.  Which elements a block
// owns depends on the size of the array alone, never on the GPU.

#pragma once

#include "prelude.cuh"

constexpr unsigned WHOLE_WARP = 0xffffffffu;
constexpr int WARPS = THREADS / 32;  // the size of `scratch` below, where a block has THREADS

struct Sum {
    FORMULA T combine(T a, T b) { return a + b; }
};

struct Max {
    FORMULA T combine(T a, T b) { return b > a ? b : a; }  // a NaN in b is passed over
};

// The number of a thread's group, counted over all blocks.
template <int GROUP>
__device__ __forceinline__ long long group_number()
{
    return static_cast<long long>(blockIdx.x) * (THREADS / GROUP) + threadIdx.x / GROUP;
}

template <typename Operation, int GROUP = 32, typename T>
__device__ __forceinline__ T reduce_warp(T value)
{
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2)
        value = Operation::combine(value, __shfl_xor_sync(WHOLE_WARP, value, distance));
    return value;
}

// In each lane the sum of the values of all lanes up to it.
template <typename T>
__device__ __forceinline__ T scan_warp(T value)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const T before = __shfl_up_sync(WHOLE_WARP, value, distance);
        if (lane >= distance)
            value = before + value;
    }
    return value;
}

// `scratch` is an array in shared memory of one element for each warp, used where a group is a
// block.  All threads of a group must call this together, and of groups within a warp all its lanes.
template <typename Operation, int GROUP, typename T>
__device__ __forceinline__ T reduce_group(T value, T* scratch)
{
    static_assert((GROUP & (GROUP - 1)) == 0, "exchanges halve their distance");
    value = reduce_warp<Operation, GROUP < 32 ? GROUP : 32>(value);  // of one thread itself
    if constexpr (GROUP > 32) {
        __syncthreads();  // whoever still reads scratch from the last reduction comes first
        if (threadIdx.x % 32 == 0)
            scratch[threadIdx.x / 32] = value;
        __syncthreads();
        value = scratch[0];
#pragma unroll
        for (int warp = 1; warp < GROUP / 32; ++warp)
            value = Operation::combine(value, scratch[warp]);
    }
    return value;
}
