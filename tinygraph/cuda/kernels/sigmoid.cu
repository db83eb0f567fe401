// Sigmoid, forward and backward.
//
// operations of sigmoid_forward: 3 * n
// operations of sigmoid_backward: 3 * n
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Bound by memory: forward moves 2 elements for an exponential and a division, backward 3 for two
// products and a difference.
// Deterministic: no two threads write one element.

#include "logistic.cuh"

// x (n) T in, y (n) T out.
// numpy: y = 1 / (1 + np.exp(-x))
template <typename T>
__global__ void __launch_bounds__(THREADS)
sigmoid_forward(const T* __restrict__ x, T* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = logistic(x[i]);
}

// gy (n) T in, y (n) T in: the output of forward, gx (n) T out.
// numpy: gx = gy * (y * (1 - y))
template <typename T>
__global__ void __launch_bounds__(THREADS)
sigmoid_backward(const T* __restrict__ gy, const T* __restrict__ y, T* __restrict__ gx,
                 long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = gy[i] * (y[i] * (T(1) - y[i]));
}
