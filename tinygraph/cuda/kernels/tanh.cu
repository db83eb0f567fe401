// Tanh, forward and backward.
//
// operations of tanh_forward: n
// operations of tanh_backward: 3 * n
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Bound by memory: forward moves 2 elements for one tanh, backward 3 for two products and a
// difference.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// x (n) T in, y (n) T out.
// numpy: y = np.tanh(x)
template <typename T>
__global__ void __launch_bounds__(THREADS)
tanh_forward(const T* __restrict__ x, T* __restrict__ y, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        y[i] = tanh(x[i]);
}

// gy (n) T in, y (n) T in: the output of forward, gx (n) T out.
// numpy: gx = gy * (1 - y**2)
template <typename T>
__global__ void __launch_bounds__(THREADS)
tanh_backward(const T* __restrict__ gy, const T* __restrict__ y, T* __restrict__ gx, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = gy[i] * (T(1) - y[i] * y[i]);
}
