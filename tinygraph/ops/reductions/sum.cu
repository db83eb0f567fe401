// Sum over axes, forward and backward.
//
// instances: sum_forward<T> for T in float, double, long long
// operations of sum_forward: x
// operations of sum_backward: 0
//
// Which thread owns what, grid, block, the order of the sum and how memory is read: axes.cuh.
// Bound by memory: forward reads each element once, backward writes each once.
// Deterministic: no two groups of threads write one element.

#include "axes.cuh"

// x (kept0, reduced0, kept1, reduced1, kept2) T in; sums (outputs, slices) T out: the result where
// there is one slice.
// numpy: x.sum((1, 3))
template <typename T>
__global__ void __launch_bounds__(THREADS)
sum_forward(const T* __restrict__ x, T* __restrict__ sums, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T sum = sum_of_part(sets, part, scratch, [=](long long i) { return x[i]; });
        if (sets.lane() == 0)
            sums[part.index] = sum;
    });
}

// gy (outputs) T in, gx (kept0, reduced0, kept1, reduced1, kept2) T out.
// numpy: gx[...] = gy.reshape(kept0, 1, kept1, 1, kept2)
template <typename T>
__global__ void __launch_bounds__(THREADS)
sum_backward(const T* __restrict__ gy, T* __restrict__ gx, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T g = gy[part.output];
        for (Walk at = sets.walk(part); at.inside(); at.next())
            gx[at.offset] = g;
    });
}
