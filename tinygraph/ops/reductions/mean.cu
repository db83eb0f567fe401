// Mean over axes, forward and backward.
//
// operations of mean_forward: x + means
// operations of mean_backward: gy
//
// Which thread owns what, grid, block, the order of the sum and how memory is read: axes.cuh.
// Bound by memory: forward reads each element once, backward writes each once.
// Deterministic: no two groups of threads write one element.

#include "axes.cuh"

// x (kept0, reduced0, kept1, reduced1, kept2) T in; means (outputs, slices) T out: sums of the
// slices over the divisor, which is 1 but for the last stage: the number of elements of a set.
// numpy: x.sum((1, 3)) / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
mean_forward(const T* __restrict__ x, T* __restrict__ means, T divisor, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T sum = sum_of_part(sets, part, scratch, [=](long long i) { return x[i]; });
        if (sets.lane() == 0)
            means[part.index] = sum / divisor;  // of nothing: 0 / 0 is NaN
    });
}

// gy (outputs) T in, gx (kept0, reduced0, kept1, reduced1, kept2) T out.
// numpy: gx[...] = gy.reshape(kept0, 1, kept1, 1, kept2) / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
mean_backward(const T* __restrict__ gy, T* __restrict__ gx, T divisor, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T share = gy[part.output] / divisor;
        for (Walk at = sets.walk(part); at.inside(); at.next())
            gx[at.offset] = share;
    });
}
