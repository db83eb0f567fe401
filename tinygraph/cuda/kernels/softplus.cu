// Softplus, forward and backward.
//
// operations of softplus_forward: 5 * n  # less above the threshold
// operations of softplus_backward: 5 * n  # less above the threshold
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: neighbouring threads read and write neighbouring elements, each once: fully coalesced.
// Bound by memory: forward moves 2 elements for an exponential, a logarithm and a division,
// backward 3 for an exponential and a division.
// Deterministic: no two threads write one element.

#include "logistic.cuh"

// x (n) T in, y (n) T out.
// numpy: z = beta * x; y = np.where(z > threshold, x, np.log1p(np.exp(z)) / beta)
template <typename T>
__global__ void __launch_bounds__(THREADS)
softplus_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T beta, T threshold)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i], z = beta * value;
        // A NaN is not above the threshold, and comes through the tail.
        y[i] = z > threshold ? value : (value > T(0) ? value : T(0)) + softplus_tail(z) / beta;
    }
}

// gy, x (n) T in, gx (n) T out.
// numpy: z = beta * x; gx = np.where(z > threshold, gy, gy / (1 + np.exp(-z)))
template <typename T>
__global__ void __launch_bounds__(THREADS)
softplus_backward(const T* __restrict__ gy, const T* __restrict__ x, T* __restrict__ gx,
                  long long n, T beta, T threshold)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T z = beta * x[i];
        gx[i] = z > threshold ? gy[i] : gy[i] * logistic(z);
    }
}
