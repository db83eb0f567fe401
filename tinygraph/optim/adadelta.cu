// The update of ADADELTA.
//
// instances: adadelta_update<T> for T in float, double
// instances (PARTS=32): adadelta_update<T> for T in float, double
// operations of adadelta_update: (18 if weight_decay else 16) * n
//
// Which thread owns what, grid, block and memory: parameters.cuh.  Value and running
// means are read and written once, the gradient is read once: 7 n elements.
// About 18 operations an element, two roots and a quotient among them: bound by memory.

#include "optimizer.cuh"

// value, square_avg, acc_delta (n) T in and out, grad (n) T in; rates (parts) T in: lr of
// each.  `fresh` is 1 - rho.
// numpy: g = grad + weight_decay * value
//        square_avg = rho * square_avg + fresh * g * g
//        d = g / np.sqrt(square_avg + eps) * np.sqrt(acc_delta + eps)
//        acc_delta = rho * acc_delta + fresh * d * d
//        value -= lr * d
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
adadelta_update(VALUES, GRADIENTS, STATE(square_avg), STATE(acc_delta), SIZES,
                const T* __restrict__ rates, T rho, T fresh, T eps, T weight_decay)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const auto square_avg = updates(of_part(own.part, ALL(square_avg)));
    const auto acc_delta = updates(of_part(own.part, ALL(acc_delta)));
    const T lr = rates[own.part];
    const auto update = [=](T& x, T dx, T& v, T& deltas) {
        const T g = decayed(dx, x, weight_decay);
        running_mean(v, rho, fresh, g * g);
        const T d = g / sqrt(v + eps) * sqrt(deltas + eps);
        running_mean(deltas, rho, fresh, d * d);
        x -= lr * d;
    };
    by_packs(own, update, value, grad, square_avg, acc_delta);
}
