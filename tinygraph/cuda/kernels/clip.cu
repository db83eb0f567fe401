// clip: each element brought into an interval, forward and backward.
//
// instances: clip_forward<T>, clip_backward<T> for T in float, double
// instances: clip_forward<long long>
// operations of clip_forward: 0
// operations of clip_backward: 0
//
// Integers of any width do too, forward; the host names their types as it needs them.
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256).
// Memory: neighbouring threads touch neighbouring elements, each once: fully coalesced.
// Operations: two comparisons an element: bound by memory.
// Deterministic: no two threads write one element.

#include "prelude.cuh"

// x (n) T in, y (n) T out; low <= high.  What is no bound is infinite, or the last of the integers.
// numpy: y = np.where(x < low, low, np.where(x > high, high, x))
template <typename T>
__global__ void __launch_bounds__(THREADS)
clip_forward(const T* __restrict__ x, T* __restrict__ y, long long n, T low, T high)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T value = x[i];
        y[i] = value < low ? low : value > high ? high : value;  // NaN is neither
    }
}

// gy, x (n) T in, gx (n) T out.
// numpy: gx = np.where((low <= x) & (x <= high), gy, 0)
template <typename T>
__global__ void __launch_bounds__(THREADS)
clip_backward(const T* __restrict__ gy, const T* __restrict__ x, T* __restrict__ gx, long long n,
              T low, T high)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = low <= x[i] && x[i] <= high ? gy[i] : T(0);
}
