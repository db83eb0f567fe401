// The update of SrcnnSGD: momentum over whole steps, which the batch size divides last.
//
// instances: srcnn_sgd_update<T> for T in float, double
// operations of srcnn_sgd_update: (7 if weight_decay else 5) * n
//
// A thread owns elements i, i + stride, ... of one parameter (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Value and last step
// are read and written once, the gradient is read once: 5 n elements.
// About 7 operations an element: bound by memory.
// Deterministic: no two threads touch one element.

#include "optimizer.cuh"

// value, previous_step (n) T in and out, grad (n) T in.
// numpy: previous_step = momentum * previous_step + lr * grad + weight_decay * value
//        value -= previous_step / batch_size
template <typename T>
__global__ void __launch_bounds__(THREADS)
srcnn_sgd_update(T* __restrict__ value, const T* __restrict__ grad, T* __restrict__ previous_step,
                 long long n, const T* __restrict__ rates, T momentum, T weight_decay, T batch_size)
{
    const T lr = rates[0];
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T step = momentum * previous_step[i] + lr * grad[i];
        const T d = decayed(step, value[i], weight_decay);
        previous_step[i] = d;
        value[i] -= d / batch_size;
    }
}
