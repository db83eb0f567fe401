// Heaviside's step function.  Its gradient is zeros, which take no kernel.
//
// operations of heaviside_forward: 0
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256).
// Memory: neighbouring threads touch neighbouring elements, each once: fully coalesced.
// Operations: at most three comparisons an element: bound by memory.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// x (n) T in, y (n) T out; at_zero is the value at 0.
// numpy: y = np.heaviside(x, at_zero)
template <typename T>
__global__ void __launch_bounds__(THREADS)
heaviside_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T at_zero)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i];
        // What is not 0, and neither above nor below, is NaN.
        y[i] = value > T(0) ? T(1) : value < T(0) ? T(0) : value == T(0) ? at_zero : value;
    }
}
