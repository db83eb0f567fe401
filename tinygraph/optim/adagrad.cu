// The update of Adagrad.
//
// instances: adagrad_update<T> for T in float, double
// instances (PARTS=32): adagrad_update<T> for T in float, double
// operations of adagrad_update: (9 if weight_decay else 7) * n
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
__global__ void __launch_bounds__(THREADS, 2)
adagrad_update(VALUES, GRADIENTS, STATE(squares), SIZES, const T* __restrict__ rates, T eps,
               T weight_decay)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const auto squares = updates(of_part(own.part, ALL(squares)));
    const T rate = rates[own.part];
    const auto update = [=](T& x, T dx, T& s) {
        const T g = decayed(dx, x, weight_decay);
        s += g * g;
        x -= g / (sqrt(s) + eps) * rate;
    };
    by_packs(own, update, value, grad, squares);
}
