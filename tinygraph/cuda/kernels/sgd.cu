// The update of stochastic gradient descent: momentum, Nesterov's variant and weight decay.
//
// operations of sgd_update: (4 if weight_decay else 2) * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
// operations of sgd_momentum_update: (2 + (0 if first else 3) + (2 if nesterov else 0)
//             + (2 if weight_decay else 0)) * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
//
// Which thread owns what, grid, block and memory: parameters.cuh.  All of the update is
// done in registers, so that value and momentum are read and written once, the gradient read once.

#include "optimizer.cuh"

// value (n) T in and out, grad (n) T in; rates (parts) T in: lr of each, which may change while a
// graph of launches stays.
// numpy: value -= lr * (grad + weight_decay * value)
template <typename T>
__global__ void __launch_bounds__(THREADS)
sgd_update(VALUES, GRADIENTS, SIZES, const T* __restrict__ rates, T weight_decay)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    const T lr = rates[own.part];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = decayed(grad[i], value[i], weight_decay);
        value[i] -= lr * g;
    }
}

// value, buffer (n) T in and out, grad (n) T in; rates (parts) T in: lr of each.  `fresh` is
// 1 - dampening, the weight of a new gradient.  At the first step (`first` is 1) the buffer is only
// written: it takes the gradient.
// numpy: g = grad + weight_decay * value
//        buffer = g if first else momentum * buffer + fresh * g
//        value -= lr * (g + momentum * buffer if nesterov else buffer)
template <typename T>
__global__ void __launch_bounds__(THREADS)
sgd_momentum_update(VALUES, GRADIENTS, STATE(buffer), SIZES, const T* __restrict__ rates, T momentum,
                    T weight_decay, T fresh, int nesterov, int first)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const buffer = of_part(own.part, EIGHT(buffer));
    const T lr = rates[own.part];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = decayed(grad[i], value[i], weight_decay);
        const T b = first ? g : momentum * buffer[i] + fresh * g;
        buffer[i] = b;
        value[i] -= lr * (nesterov ? g + momentum * b : b);
    }
}
