// Logarithm of a sum of exponentials over axes, forward and backward.
//
// operations of logsumexp_forward: 4 * kept0 * reduced0 * kept1 * reduced1 * kept2 + 2 * y
// operations of logsumexp_backward: 3 * x
//
// Which thread owns what, grid, block, the order of sums and how memory is read: axes.cuh.  What a
// part of a set leaves for the next stage: exponentials.cuh.
// Forward reads each element twice, the second time from cache, as a part holds at most 8192
// elements; backward reads and writes each once.  Both take one exp for each element, and forward
// one log for each output.
// Deterministic: no two groups of threads write one element.

#include "exponentials.cuh"

// x (kept0, reduced0, kept1, reduced1, kept2) T in.  From the second stage on, x_exponentials
// (2, parts) T in, of parts that form such an array; null in the first.
// exponentials (2, outputs * slices) T out or null: maxima, and sums of exp(x - maximum).  y
// (outputs) T out or null; where there are several slices it must be null.
// numpy: y = np.log(np.exp(x).sum((1, 3)))
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
logsumexp_forward(const T* __restrict__ x, const T* __restrict__ x_exponentials,
                  T* __restrict__ exponentials, T* __restrict__ y, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const Exponentials<T> of = exponentials_of_part(sets, part, x, x_exponentials, scratch);
        if (sets.lane() != 0)
            return;
        if (exponentials) {
            exponentials[part.index] = of.maximum;
            exponentials[sets.parts() + part.index] = of.sum;
        }
        if (y)
            y[part.output] = of.level() + log(of.sum);
    });
}

// gy, y (outputs) T in, x (kept0, reduced0, kept1, reduced1, kept2) T in, gx of its shape T out.
// Where y is -inf, so is all of x, and gx is 0.
// numpy: gx = gy.reshape(kept0, 1, kept1, 1, kept2) * np.exp(x - y.reshape(kept0, 1, ...))
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
logsumexp_backward(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ y,
                   T* __restrict__ gx, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T g = gy[part.output];
        const T level = y[part.output] == -INFINITY ? T(0) : y[part.output];
        for (Walk at = sets.walk(part); at.inside(); at.next())
            gx[at.offset] = g * exp(x[at.offset] - level);
    });
}
