// The update of RMSprop: plain or centered, with or without momentum.
//
// instances: rmsprop_update<T> for T in float, double
// instances (PARTS=32): rmsprop_update<T> for T in float, double
// operations of rmsprop_update: (11 if weight_decay else 9) * n + 5 * grad_avg + 2 * buffer
//
// Which thread owns what, grid, block and memory: parameters.cuh.  Value and state are
// read and written once, the gradient is read once: 5 n elements, 2 n more for each of the two
// options.
// About 10 operations an element, 16 with both options: bound by memory.

#include "optimizer.cuh"

// value, square_avg (n) T in and out; grad_avg, buffer (n) T in and out, or null: not centered, no
// momentum; grad (n) T in; rates (parts) T in: lr of each.  `fresh` is 1 - alpha.
// numpy: g = grad + weight_decay * value
//        square_avg = alpha * square_avg + fresh * g * g
//        grad_avg = alpha * grad_avg + fresh * g
//        d = g / (np.sqrt(square_avg - grad_avg ** 2) + eps)
//        buffer = momentum * buffer + d; d = buffer
//        value -= lr * d
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
rmsprop_update(VALUES, GRADIENTS, STATE(square_avg), STATE(grad_avg), STATE(buffer), SIZES,
               const T* __restrict__ rates, T alpha, T fresh, T eps, T weight_decay, T momentum)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const auto square_avg = updates(of_part(own.part, ALL(square_avg)));
    const auto grad_avg = updates_if_any(of_part(own.part, ALL(grad_avg)));
    const auto buffer = updates_if_any(of_part(own.part, ALL(buffer)));
    const T lr = rates[own.part];
    const bool centered = grad_avg.of, has_momentum = buffer.of;
    const auto update = [=](T& x, T dx, T& square, T& mean, T& b) {
        const T g = decayed(dx, x, weight_decay);
        T v = running_mean(square, alpha, fresh, g * g);
        if (centered) {
            running_mean(mean, alpha, fresh, g);
            v -= mean * mean;
        }
        T d = g / (sqrt(v) + eps);
        if (has_momentum)
            d = b = d + momentum * b;
        x -= lr * d;
    };
    by_packs(own, update, value, grad, square_avg, grad_avg, buffer);
}
