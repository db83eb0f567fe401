// The update of Adagrad.
//
// instances: adagrad_update<T> for T in float, double
// operations of adagrad_update: (9 if weight_decay else 7) * n
//
// A thread owns elements i, i + stride, ... of one parameter (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Value and sum are
// read and written once, the gradient is read once: 5 n elements.
// About 9 operations an element, a root and a quotient among them: bound by memory.
// Deterministic: no two threads touch one element.

#include "optimizer.cuh"

// value, squares (n) T in and out, grad (n) T in.  `rate` is the learning rate of this step.
// numpy: g = grad + weight_decay * value
//        squares += g * g
//        value -= rate * g / (np.sqrt(squares) + eps)
template <typename T>
__global__ void __launch_bounds__(THREADS)
adagrad_update(T* __restrict__ value, const T* __restrict__ grad, T* __restrict__ squares,
               long long n, const T* __restrict__ rates, T eps, T weight_decay)
{
    const T rate = rates[0];
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = decayed(grad[i], value[i], weight_decay);
        const T s = squares[i] + g * g;
        squares[i] = s;
        value[i] -= g / (sqrt(s) + eps) * rate;
    }
}
