// ReLU, forward and backward.
//
// operations of relu_forward: 0
// operations of relu_backward: 0
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Bound by memory: forward moves 2, backward 3 elements for one comparison.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// x (n) T in, y (n) T out.
// numpy: y = np.where(x <= 0, 0, x)
template <typename T>
__global__ void __launch_bounds__(THREADS)
relu_forward(const T* __restrict__ x, T* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i];
        y[i] = value <= T(0) ? T(0) : value;  // this way round NaN stays NaN, and -0 becomes 0
    }
}

// gy (n) T in, y (n) T in: the output of forward, gx (n) T out.
// numpy: gx = np.where(y != 0, gy, 0)
template <typename T>
__global__ void __launch_bounds__(THREADS)
relu_backward(const T* __restrict__ gy, const T* __restrict__ y, T* __restrict__ gx, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = y[i] != T(0) ? gy[i] : T(0);
}
