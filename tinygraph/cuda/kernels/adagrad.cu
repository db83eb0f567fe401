// The update of Adagrad.
//
// operations of adagrad_update: (9 if weight_decay else 7) * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
//
// Which thread owns what, grid, block and memory: parameters.cuh.  Value and sum are
// read and written once, the gradient is read once: 5 n elements.
// About 9 operations an element, a root and a quotient among them: bound by memory.

#include "optimizer.cuh"

// value, squares (n) T in and out, grad (n) T in.  rates (parts) T in: the learning
// rate of this step of each.
// numpy: g = grad + weight_decay * value
//        squares += g * g
//        value -= rate * g / (np.sqrt(squares) + eps)
template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
adagrad_update(VALUES, GRADIENTS, STATE(squares), SIZES, const T* __restrict__ rates, T eps,
               T weight_decay)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const squares = of_part(own.part, EIGHT(squares));
    const T rate = rates[own.part];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T g = decayed(grad[i], value[i], weight_decay);
        const T s = squares[i] + g * g;
        squares[i] = s;
        value[i] -= g / (sqrt(s) + eps) * rate;
    }
}
