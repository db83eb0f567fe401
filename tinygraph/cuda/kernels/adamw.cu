// The update of AdamW: Adam, with weight decay beside the gradient instead of within it.
//
// operations of adamw_update: 13 * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
//
// Which thread owns what, grid, block and memory: parameters.cuh.  Value and running
// means are read and written once, the gradient is read once: 7 n elements, 9 n with `largest`.
// About 12 operations an element, a root and a quotient among them: bound by memory.

#include "adam.cuh"

// value, exp_avg, exp_avg_sq (n) T in and out, largest (n) T in and out or null, grad (n) T in.
// The numbers are those of AdamNumbers; rates (parts, 3) T in: size, eps and `remaining`, which is
// 1 - lr * weight_decay, of each.
// numpy: value *= remaining
//        exp_avg = beta1 * exp_avg + fresh1 * grad
//        exp_avg_sq = beta2 * exp_avg_sq + fresh2 * grad * grad
//        largest = np.maximum(largest, exp_avg_sq)
//        value -= size * exp_avg / (np.sqrt(largest) + eps), without `largest` exp_avg_sq
template <typename T>
__global__ void __launch_bounds__(THREADS)
adamw_update(VALUES, GRADIENTS, ADAM_STATE, SIZES, T beta1, T fresh1, T beta2, T fresh2,
             const T* __restrict__ rates)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const exp_avg = of_part(own.part, EIGHT(exp_avg));
    T* const exp_avg_sq = of_part(own.part, EIGHT(exp_avg_sq));
    T* const largest = of_part(own.part, EIGHT(largest));
    const AdamNumbers<T> numbers = {beta1, fresh1, beta2, fresh2, rates[3 * own.part],
                                    rates[3 * own.part + 1]};
    const T remaining = rates[3 * own.part + 2];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T step = adam_step(grad[i], exp_avg[i], exp_avg_sq[i],
                                 largest ? largest + i : largest, numbers);
        value[i] = value[i] * remaining - step;
    }
}
