// The update of SrcnnSGD: momentum over whole steps, which the batch size divides last.
//
// operations of srcnn_sgd_update: (7 if weight_decay else 5) * (n_0 + n_1 + n_2 + n_3
//             + n_4 + n_5 + n_6 + n_7)
//
// A launch takes eight parameters, each n elements; see parameters.cuh.  A thread owns elements
// first, first + stride, ... of one of them (a grid-stride loop).
// Grid (the sum of min(ceil(n_p / 256), most_blocks)), block (256).
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.  Value and last step
// are read and written once, the gradient is read once: 5 n elements.
// About 7 operations an element: bound by memory.
// Deterministic: no two threads touch one element.

#include "optimizer.cuh"

#define PREVIOUS_STEPS                                                                           \
    T *__restrict__ previous_step_0, T *__restrict__ previous_step_1,                            \
        T *__restrict__ previous_step_2, T *__restrict__ previous_step_3,                        \
        T *__restrict__ previous_step_4, T *__restrict__ previous_step_5,                        \
        T *__restrict__ previous_step_6, T *__restrict__ previous_step_7

// value, previous_step (n) T in and out, grad (n) T in; rates (parts) T in: lr of each.
// numpy: previous_step = momentum * previous_step + lr * grad + weight_decay * value
//        value -= previous_step / batch_size
template <typename T>
__global__ void __launch_bounds__(THREADS)
srcnn_sgd_update(VALUES, GRADIENTS, PREVIOUS_STEPS, SIZES, const T* __restrict__ rates,
                 T momentum, T weight_decay, T batch_size)
{
    const Share own = own_share(EIGHT(n), most_blocks);
    T* const value = of_part(own.part, EIGHT(value));
    const T* const grad = of_part(own.part, EIGHT(grad));
    T* const previous_step = of_part(own.part, EIGHT(previous_step));
    const T lr = rates[own.part];
    for (long long i = own.first; i < own.n; i += own.stride) {
        const T step = momentum * previous_step[i] + lr * grad[i];
        const T d = decayed(step, value[i], weight_decay);
        previous_step[i] = d;
        value[i] -= d / batch_size;
    }
}
