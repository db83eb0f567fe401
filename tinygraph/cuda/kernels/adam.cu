// The update of Adam, with an L2 penalty.
//
// operations of adam_update: (14 if weight_decay else 12) * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
//
// Which thread owns what, grid, block and memory: parameters.cuh.  Value and running
// means are read and written once, the gradient is read once: 7 n elements, 9 n with `largest`.
// About 12 operations an element, a root and a quotient among them: bound by memory.

#include "adam.cuh"

// value, exp_avg, exp_avg_sq (n) T in and out, largest (n) T in and out or null, grad (n) T in.
// The numbers are those of AdamNumbers; rates (parts, 2) T in: size and eps of each, which change
// from step to step.
// numpy: g = grad + weight_decay * value
//        exp_avg = beta1 * exp_avg + fresh1 * g
//        exp_avg_sq = beta2 * exp_avg_sq + fresh2 * g * g
//        largest = np.maximum(largest, exp_avg_sq)
//        value -= size * exp_avg / (np.sqrt(largest) + eps), without `largest` exp_avg_sq
template <typename T>
__global__ void __launch_bounds__(THREADS)
adam_update(VALUES, GRADIENTS, ADAM_STATE, SIZES, T beta1, T fresh1, T beta2, T fresh2,
            const T* __restrict__ rates, T weight_decay)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const exp_avg = of_part(own.part, EIGHT(exp_avg));
    T* const exp_avg_sq = of_part(own.part, EIGHT(exp_avg_sq));
    T* const largest = of_part(own.part, EIGHT(largest));
    const AdamNumbers<T> numbers = {beta1, fresh1, beta2, fresh2, rates[2 * own.part],
                                    rates[2 * own.part + 1]};
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = decayed(grad[i], value[i], weight_decay);
        value[i] -= adam_step(g, exp_avg[i], exp_avg_sq[i], largest ? largest + i : largest,
                              numbers);
    }
}
