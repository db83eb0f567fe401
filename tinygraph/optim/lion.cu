// The update of Lion: the sign of an interpolation between the gradient and its running mean.
//
// instances: lion_update<T> for T in float, double
// instances (PARTS=32): lion_update<T> for T in float, double
// operations of lion_update: 9 * n
//
// Which thread owns what, grid, block and memory: parameters.cuh.  Value and running mean are
// read and written once, the gradient is read once: 5 n elements.
// About 9 operations an element: bound by memory.

#include "optimizer.cuh"

// value, exp_avg (n) T in and out, grad (n) T in.  `fresh` is 1 - beta, rounded once.  rates
// (parts, 2) T in: lr and `remaining`, which is 1 - lr * weight_decay, of each.
// numpy: value = remaining * value - lr * np.sign(beta1 * exp_avg + fresh1 * grad)
//        exp_avg = beta2 * exp_avg + fresh2 * grad
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
lion_update(VALUES, GRADIENTS, STATE(exp_avg), SIZES, T beta1, T fresh1, T beta2, T fresh2,
            const T* __restrict__ rates)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const auto exp_avg = updates(of_part(own.part, ALL(exp_avg)));
    const T lr = rates[2 * own.part], remaining = rates[2 * own.part + 1];
    const auto update = [=](T& x, T dx, T& m) {
        const T c = beta1 * m + fresh1 * dx;
        const T sign = c > T(0) ? T(1) : c < T(0) ? T(-1) : c;  // of 0 0, of NaN NaN
        x = x * remaining - lr * sign;
        running_mean(m, beta2, fresh2, dx);
    };
    by_packs(own, update, value, grad, exp_avg);
}
