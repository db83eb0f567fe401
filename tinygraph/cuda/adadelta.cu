// The update of ADADELTA.
//
// instances: adadelta_update<T> for T in float, double
// operations of adadelta_update: (18 if weight_decay else 16) * n
//
// A thread owns elements i, i + stride, ... of one parameter (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Value and running
// means are read and written once, the gradient is read once: 7 n elements.
// About 18 operations an element, two roots and a quotient among them: bound by memory.
// Deterministic: no two threads touch one element.

#include "optimizer.cuh"

// value, square_avg, acc_delta (n) T in and out, grad (n) T in.  `fresh` is 1 - rho.
// numpy: g = grad + weight_decay * value
//        square_avg = rho * square_avg + fresh * g * g
//        d = g / np.sqrt(square_avg + eps) * np.sqrt(acc_delta + eps)
//        acc_delta = rho * acc_delta + fresh * d * d
//        value -= lr * d
template <typename T>
__global__ void __launch_bounds__(THREADS)
adadelta_update(T* __restrict__ value, const T* __restrict__ grad, T* __restrict__ square_avg,
                T* __restrict__ acc_delta, long long n, const T* __restrict__ rates, T rho,
                T fresh, T eps, T weight_decay)
{
    const T lr = rates[0];
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = decayed(grad[i], value[i], weight_decay);
        const T v = running_mean(square_avg[i], rho, fresh, g * g);
        const T d = g / sqrt(v + eps) * sqrt(acc_delta[i] + eps);
        running_mean(acc_delta[i], rho, fresh, d * d);
        value[i] -= lr * d;
    }
}
