// PReLU, forward and backward.
//
// instances: prelu_forward<T>, prelu_backward<T> for T in float, double
// operations of prelu_forward: x  # none where x > 0
// operations of prelu_backward: 2 * gy + gx  # none where x > 0
//
// The elements that share a slope are the set of an output: of images kept1 are the channels, between
// samples and pixels; with one slope for all, there is one set.  Which thread owns what, grid, block,
// the order of the sum and how memory is read: axes.cuh.
// Bound by memory: forward moves 2 elements for each, backward 3; a slope is read once for a part.
// Deterministic: no two groups of threads write one element.

#include "axes.cuh"

// x (kept0, reduced0, kept1, reduced1, kept2) T in, weight (outputs) T in, y of x's shape T out.
// numpy: y = np.where(x > 0, x, weight.reshape(kept0, 1, kept1, 1, kept2) * x)
template <typename T>
__global__ void __launch_bounds__(THREADS)
prelu_forward(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y,
              SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T slope = weight[part.output];
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const T value = x[at.offset];
            y[at.offset] = value > T(0) ? value : slope * value;
        }
    });
}

// gy, x (kept0, reduced0, kept1, reduced1, kept2) T in, weight (outputs) T in; gx of x's shape T out
// or null; sums (outputs, slices) T out or null: the weight's gradient where there is one slice.
// numpy: gx = np.where(x > 0, gy, weight.reshape(kept0, 1, kept1, 1, kept2) * gy)
//        gw = np.where(x > 0, 0, gy * x).sum((1, 3))
template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
prelu_backward(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ weight,
               T* __restrict__ gx, T* __restrict__ sums, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T slope = weight[part.output];
        const T sum = sum_of_part(sets, part, scratch, [=](long long i) {
            const T g = gy[i], value = x[i];
            const bool above = value > T(0);
            if (gx)
                gx[i] = above ? g : slope * g;
            return above ? T(0) : g * value;
        });
        if (sums && sets.lane() == 0)
            sums[part.index] = sum;
    });
}
