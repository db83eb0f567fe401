// The update of AdamW: Adam, with weight decay beside the gradient instead of within it.
//
// instances: adamw_update<T> for T in float, double
// operations of adamw_update: 13 * n
//
// A thread owns elements i, i + stride, ... of one parameter (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Value and running
// means are read and written once, the gradient is read once: 7 n elements, 9 n with `largest`.
// About 12 operations an element, a root and a quotient among them: bound by memory.
// Deterministic: no two threads touch one element.

#include "adam.cuh"

// value, exp_avg, exp_avg_sq (n) T in and out, largest (n) T in and out or null, grad (n) T in.
// `remaining` is 1 - lr * weight_decay; the other numbers are those of AdamNumbers.
// numpy: value *= remaining
//        exp_avg = beta1 * exp_avg + fresh1 * grad
//        exp_avg_sq = beta2 * exp_avg_sq + fresh2 * grad * grad
//        largest = np.maximum(largest, exp_avg_sq)
//        value -= size * exp_avg / (np.sqrt(largest) + eps), without `largest` exp_avg_sq
template <typename T>
__global__ void __launch_bounds__(THREADS)
adamw_update(T* __restrict__ value, const T* __restrict__ grad, T* __restrict__ exp_avg,
             T* __restrict__ exp_avg_sq, T* __restrict__ largest, long long n, T beta1, T fresh1,
             T beta2, T fresh2, const T* __restrict__ rates)
{
    const AdamNumbers<T> numbers = {beta1, fresh1, beta2, fresh2, rates[0], rates[1]};
    const T remaining = rates[2];
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T step = adam_step(grad[i], exp_avg[i], exp_avg_sq[i],
                                 largest ? largest + i : largest, numbers);
        value[i] = value[i] * remaining - step;
    }
}
