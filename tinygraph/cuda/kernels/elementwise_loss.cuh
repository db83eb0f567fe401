// The skeleton of losses that compare two arrays element by element: what a loss adds is one
// function of an element.
//
// Which thread owns what, grid, block and memory: the grid-stride loop of prelude.cuh.
// Deterministic: the sum is taken in a fixed order (reduce.cuh), which depends on n alone.
//
// A loss of each element is written as it is.  A sum or a mean is one launch where a single block
// has enough threads, else two: each block leaves a partial sum, `loss_finish` (losses.cu) adds
// them up.  Whichever comes last divides.

#pragma once

#include "reduce.cuh"

// losses (n) T out or null, sums (gridDim.x) T out or null: one of the two.
// loss_at(i) is called once for each element.
// numpy: losses = loss_at(np.arange(n)), or sums.sum() == loss_at(np.arange(n)).sum() / divisor
template <typename T, typename LossAt>
__device__ __forceinline__ void write_losses(T* losses, T* sums, long long n, T divisor,
                                             LossAt loss_at)
{
    __shared__ T scratch[WARPS];
    T sum = 0;
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T loss = loss_at(i);
        if (losses)
            losses[i] = loss;
        sum += loss;
    }
    if (losses)
        return;  // all threads together, so nobody waits for them
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum / divisor;
}

// The gradient that reaches the loss of element i.  gloss (n) T where `each` is 1, (1) where it
// is 0; scale is 1 / n for a mean, else 1, times what the loss leaves out of its slopes.
template <typename T>
__device__ __forceinline__ T upstream(const T* gloss, int each, long long i, T scale)
{
    return gloss[each ? i : 0] * scale;
}
