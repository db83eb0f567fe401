// Leaky ReLU, forward and backward.
//
// operations of leaky_relu_forward: n  # none where x > 0
// operations of leaky_relu_backward: n  # none where x > 0
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Bound by memory: forward moves 2, backward 3 elements for one comparison and one product.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// x (n) T in, y (n) T out.
// numpy: y = np.where(x > 0, x, slope * x)
template <typename T>
__global__ void __launch_bounds__(THREADS)
leaky_relu_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T slope)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i];
        y[i] = value > T(0) ? value : slope * value;
    }
}

// gy, x (n) T in, gx (n) T out.
// numpy: gx = np.where(x > 0, gy, slope * gy)
template <typename T>
__global__ void __launch_bounds__(THREADS)
leaky_relu_backward(const T* __restrict__ gy, const T* __restrict__ x, T* __restrict__ gx,
                    long long n, T slope)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = x[i] > T(0) ? gy[i] : slope * gy[i];
}
