// The skeleton of losses that compare two arrays element by element: what a loss adds is one
// function of an element.
//
// Which thread owns what, grid, block and memory: packs.cuh.
// Deterministic: the sum is taken in a fixed order (reduce.cuh), which depends on n alone.
//
// A loss of each element is written as it is.  A sum or a mean is one launch where a single block
// has enough threads, else two: each block leaves a partial sum, `loss_finish` (losses.cu) adds
// them up.  Whichever comes last divides.

#pragma once

#include "packs.cuh"
#include "reduce.cuh"

// losses (n) T out or null, sums (gridDim.x) T out or null: one of the two.  loss_of(...) is called
// once for each element, with what `arrays` name (packs.cuh).
// numpy: losses = loss_of(*arrays), or sums.sum() == loss_of(*arrays).sum() / divisor
template <typename T, typename LossOf, typename... Arrays>
__device__ __forceinline__ void write_losses(T* losses, T* sums, long long n, T divisor,
                                             LossOf loss_of, const Arrays&... arrays)
{
    __shared__ T scratch[WARPS];
    T sum = 0;
    const auto add = [&](T& loss, auto&... of) {
        loss = loss_of(of...);
        sum += loss;
    };
    by_packs(n, add, writes_if_any(losses), arrays...);
    if (losses)
        return;  // all threads together, so nobody waits for them
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum / divisor;
}

// slope_of(g, ...) is called once for each element, with the gradient that reaches its loss and what
// `arrays` name.  gloss (n) T where `each` is 1, (1) where it is 0; scale is 1 / n for a mean, else 1,
// times what the loss leaves out of its slopes.
template <typename T, typename SlopeOf, typename... Arrays>
__device__ __forceinline__ void with_upstream(const T* gloss, int each, long long n, T scale,
                                              SlopeOf slope_of, const Arrays&... arrays)
{
    if (each) {
        const auto own = [=](T g, auto&... of) { slope_of(g * scale, of...); };
        by_packs(n, own, reads(gloss), arrays...);
    } else {
        const T g = gloss[0];
        by_packs(n, [=](auto&... of) { slope_of(g * scale, of...); }, arrays...);
    }
}
