// The update of Adam, with an L2 penalty.
//
// instances: adam_update<T> for T in float, double
// instances (PARTS=32): adam_update<T> for T in float, double
// operations of adam_update: (14 if weight_decay else 12) * n
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
__global__ void __launch_bounds__(THREADS, 2)
adam_update(VALUES, GRADIENTS, ADAM_STATE, SIZES, T beta1, T fresh1, T beta2, T fresh2,
            const T* __restrict__ rates, T weight_decay)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const auto exp_avg = updates(of_part(own.part, ALL(exp_avg)));
    const auto exp_avg_sq = updates(of_part(own.part, ALL(exp_avg_sq)));
    const auto largest = updates_if_any(of_part(own.part, ALL(largest)));
    const AdamNumbers<T> numbers = {beta1, fresh1, beta2, fresh2, rates[2 * own.part],
                                    rates[2 * own.part + 1]};
    const auto update = [=](T& x, T dx, T& m, T& v, T& most) {
        x -= adam_step(decayed(dx, x, weight_decay), m, v, most, numbers);
    };
    by_packs(own, update, value, grad, exp_avg, exp_avg_sq, largest);
}
