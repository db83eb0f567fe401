// The update of ADADELTA.
//
// operations of adadelta_update: (18 if weight_decay else 16) * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
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
__global__ void __launch_bounds__(THREADS)
adadelta_update(VALUES, GRADIENTS, STATE(square_avg), STATE(acc_delta), SIZES,
                const T* __restrict__ rates, T rho, T fresh, T eps, T weight_decay)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const square_avg = of_part(own.part, EIGHT(square_avg));
    T* const acc_delta = of_part(own.part, EIGHT(acc_delta));
    const T lr = rates[own.part];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = decayed(grad[i], value[i], weight_decay);
        const T v = running_mean(square_avg[i], rho, fresh, g * g);
        const T d = g / sqrt(v + eps) * sqrt(acc_delta[i] + eps);
        running_mean(acc_delta[i], rho, fresh, d * d);
        value[i] -= lr * d;
    }
}
