// The update of stochastic gradient descent: momentum, Nesterov's variant and weight decay.
//
// instances: sgd_update<T>, sgd_momentum_update<T> for T in float, double
// operations of sgd_update: (4 if weight_decay else 2) * n
// operations of sgd_momentum_update: (2 + (0 if first else 3) + (2 if nesterov else 0)
//             + (2 if weight_decay else 0)) * n
//
// A thread owns elements i, i + stride, ... of one parameter (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  All of the update is
// done in registers, so that value and momentum are read and written once, the gradient read once.
// Deterministic: no two threads touch one element.

#include "optimizer.cuh"

// value (n) T in and out, grad (n) T in, rates (1) T in: lr, which may change while a graph of
// launches stays.
// numpy: value -= lr * (grad + weight_decay * value)
template <typename T>
__global__ void __launch_bounds__(THREADS)
sgd_update(T* __restrict__ value, const T* __restrict__ grad, long long n,
           const T* __restrict__ rates, T weight_decay)
{
    const T lr = rates[0];
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = decayed(grad[i], value[i], weight_decay);
        value[i] -= lr * g;
    }
}

// value, buffer (n) T in and out, grad (n) T in.  `fresh` is 1 - dampening, the weight of a new
// gradient; rates (1) T in: lr.  At the first step (`first` is 1) the buffer is only written: it takes the gradient.
// numpy: g = grad + weight_decay * value
//        buffer = g if first else momentum * buffer + fresh * g
//        value -= lr * (g + momentum * buffer if nesterov else buffer)
template <typename T>
__global__ void __launch_bounds__(THREADS)
sgd_momentum_update(T* __restrict__ value, const T* __restrict__ grad, T* __restrict__ buffer,
                    long long n, const T* __restrict__ rates, T momentum, T weight_decay, T fresh,
                    int nesterov, int first)
{
    const T lr = rates[0];
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = decayed(grad[i], value[i], weight_decay);
        const T b = first ? g : momentum * buffer[i] + fresh * g;
        buffer[i] = b;
        value[i] -= lr * (nesterov ? g + momentum * b : b);
    }
}
