// The update of stochastic gradient descent: momentum, Nesterov's variant and weight decay.
//
// instances: sgd_update<T>, sgd_momentum_update<T> for T in float, double
// instances (PARTS=32): sgd_update<T>, sgd_momentum_update<T> for T in float, double
// operations of sgd_update: (4 if weight_decay else 2) * n
// operations of sgd_momentum_update: (2 + (0 if first else 3) + (2 if nesterov else 0)
//             + (2 if weight_decay else 0)) * n
//
// Which thread owns what, grid, block and memory: parameters.cuh.  All of the update is
// done in registers, so that value and momentum are read and written once, the gradient read once.

#include "optimizer.cuh"

// value (n) T in and out, grad (n) T in; rates (parts) T in: lr of each, which may change while a
// graph of launches stays.
// numpy: value -= lr * (grad + weight_decay * value)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
sgd_update(VALUES, GRADIENTS, SIZES, const T* __restrict__ rates, T weight_decay)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    const T lr = rates[own.part];
    by_packs(own, [=](T& x, T dx) { x -= lr * decayed(dx, x, weight_decay); }, value, grad);
}

// value, buffer (n) T in and out, grad (n) T in; rates (parts) T in: lr of each.  `fresh` is
// 1 - dampening, the weight of a new gradient.  At the first step (`first` is 1) the buffer is only
// written: it takes the gradient.
// numpy: g = grad + weight_decay * value
//        buffer = g if first else momentum * buffer + fresh * g
//        value -= lr * (g + momentum * buffer if nesterov else buffer)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
sgd_momentum_update(VALUES, GRADIENTS, STATE(buffer), SIZES, const T* __restrict__ rates, T momentum,
                    T weight_decay, T fresh, int nesterov, int first)
{
    const Share own = own_share(most_blocks, ALL(n));
    const auto value = updates(of_part(own.part, ALL(value)));
    const auto grad = reads(of_part(own.part, ALL(grad)));
    T* const buffer = of_part(own.part, ALL(buffer));
    const T lr = rates[own.part];
    const auto update = [=](T& x, T dx, T& b) {
        const T g = decayed(dx, x, weight_decay);
        b = first ? g : momentum * b + fresh * g;
        x -= lr * (nesterov ? g + momentum * b : b);
    };
    if (first)
        by_packs(own, update, value, grad, writes(buffer));
    else
        by_packs(own, update, value, grad, updates(buffer));
}
