// ELU, forward and backward.
//
// operations of elu_forward: 2 * n  # none where x > 0
// operations of elu_backward: 3 * n  # none where x > 0
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Bound by memory: forward moves 2, backward 3 elements for one exponential.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// x (n) T in, y (n) T out.
// numpy: y = np.where(x > 0, x, alpha * np.expm1(x))
template <typename T>
__global__ void __launch_bounds__(THREADS)
elu_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T alpha)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i];
        y[i] = value > T(0) ? value : alpha * expm1(value);  // exp(x) - 1 loses digits near 0
    }
}

// gy, x (n) T in, gx (n) T out.
// numpy: gx = np.where(x > 0, gy, gy * alpha * np.exp(x))
template <typename T>
__global__ void __launch_bounds__(THREADS)
elu_backward(const T* __restrict__ gy, const T* __restrict__ x, T* __restrict__ gx, long long n,
             T alpha)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i];
        gx[i] = value > T(0) ? gy[i] : gy[i] * (alpha * exp(value));
    }
}
