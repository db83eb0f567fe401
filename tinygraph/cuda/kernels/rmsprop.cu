// The update of RMSprop: plain or centered, with or without momentum.
//
// operations of rmsprop_update: (
//             (11 if weight_decay else 9) * (n_0 + n_1 + n_2 + n_3 + n_4 + n_5 + n_6 + n_7)
//             + 5 * (grad_avg_0 + grad_avg_1 + grad_avg_2 + grad_avg_3
//                    + grad_avg_4 + grad_avg_5 + grad_avg_6 + grad_avg_7)
//             + 2 * (buffer_0 + buffer_1 + buffer_2 + buffer_3
//                    + buffer_4 + buffer_5 + buffer_6 + buffer_7))
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
__global__ void __launch_bounds__(THREADS, 4)
rmsprop_update(VALUES, GRADIENTS, STATE(square_avg), STATE(grad_avg), STATE(buffer), SIZES,
               const T* __restrict__ rates, T alpha, T fresh, T eps, T weight_decay, T momentum)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const square_avg = of_part(own.part, EIGHT(square_avg));
    T* const grad_avg = of_part(own.part, EIGHT(grad_avg));
    T* const buffer = of_part(own.part, EIGHT(buffer));
    const T lr = rates[own.part];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = decayed(grad[i], value[i], weight_decay);
        T v = running_mean(square_avg[i], alpha, fresh, g * g);
        if (grad_avg) {
            const T a = running_mean(grad_avg[i], alpha, fresh, g);
            v -= a * a;
        }
        T d = g / (sqrt(v) + eps);
        if (buffer) {
            d += momentum * buffer[i];
            buffer[i] = d;
        }
        value[i] -= lr * d;
    }
}
