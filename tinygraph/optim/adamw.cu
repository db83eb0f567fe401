// The update of AdamW: Adam, with weight decay beside the gradient instead of within it.
//
// instances: adamw_update<T> for T in float, double
// instances (PARTS=32): adamw_update<T> for T in float, double
// operations of adamw_update: 13 * n
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
__global__ void __launch_bounds__(THREADS, 2)
adamw_update(VALUES, GRADIENTS, ADAM_STATE, SIZES, T beta1, T fresh1, T beta2, T fresh2,
             const T* __restrict__ rates)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const auto exp_avg = updates(of_part(own.part, ALL(exp_avg)));
    const auto exp_avg_sq = updates(of_part(own.part, ALL(exp_avg_sq)));
    const auto largest = updates_if_any(of_part(own.part, ALL(largest)));
    const AdamNumbers<T> numbers = {beta1, fresh1, beta2, fresh2, rates[3 * own.part],
                                    rates[3 * own.part + 1]};
    const T remaining = rates[3 * own.part + 2];
    const auto update = [=](T& x, T dx, T& m, T& v, T& most) {
        x = x * remaining - adam_step(dx, m, v, most, numbers);
    };
    by_packs(own, update, value, grad, exp_avg, exp_avg_sq, largest);
}
