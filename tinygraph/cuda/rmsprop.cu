// The update of RMSprop: plain or centered, with or without momentum.
//
// instances: rmsprop_update<T> for T in float, double
// operations of rmsprop_update: (9 + (5 if grad_avg else 0) + (2 if buffer else 0)
//             + (2 if weight_decay else 0)) * n
//
// A thread owns elements i, i + stride, ... of one parameter (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Value and state are
// read and written once, the gradient is read once: 5 n elements, 2 n more for each of the two
// options.
// About 10 operations an element, 16 with both options: bound by memory.
// Deterministic: no two threads touch one element.
//
// __launch_bounds__(256, 4): left to itself the compiler aims at more blocks on a multiprocessor,
// and spills registers of the doubles for it.

#include "optimizer.cuh"

// value, square_avg (n) T in and out; grad_avg, buffer (n) T in and out, or null: not centered, no
// momentum; grad (n) T in.  `fresh` is 1 - alpha.
// numpy: g = grad + weight_decay * value
//        square_avg = alpha * square_avg + fresh * g * g
//        grad_avg = alpha * grad_avg + fresh * g
//        d = g / (np.sqrt(square_avg - grad_avg ** 2) + eps)
//        buffer = momentum * buffer + d; d = buffer
//        value -= lr * d
template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
rmsprop_update(T* __restrict__ value, const T* __restrict__ grad, T* __restrict__ square_avg,
               T* __restrict__ grad_avg, T* __restrict__ buffer, long long n,
               const T* __restrict__ rates, T alpha, T fresh, T eps, T weight_decay, T momentum)
{
    const T lr = rates[0];
    for (long long i = first_element(); i < n; i += element_stride()) {
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
