// Binary cross-entropy of probabilities, forward and backward.
//
// operations of binary_cross_entropy_forward: (8 if sums else 7) * n + sums
// operations of binary_cross_entropy_backward: (1 + (5 if gx else 0) + (4 if gy else 0)) * n
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Forward reads 2 elements and takes 2 logarithms.  Backward reads 2 and writes 1 for each gradient,
// with a division for gx and 2 logarithms for gy: to store those would move 2 elements more.

#include "elementwise_loss.cuh"

// The limits that keep loss and gradient finite at 0 and 1.  A NaN is below neither.
template <typename T>
__device__ __forceinline__ T limited_log(T logarithm)
{
    return logarithm < T(-100) ? T(-100) : logarithm;
}

template <typename T>
__device__ __forceinline__ T limited_variance(T x)
{
    const T variance = (T(1) - x) * x;
    return variance < T(1e-12) ? T(1e-12) : variance;
}

// x (n) T in: probabilities, y (n) T in: labels, losses (n) T out or null,
// sums (gridDim.x) T out or null: the losses, or their sums over the divisor.  Where x or y is no
// probability, the loss is NaN.
// numpy: losses = -(y * np.log(x) + (1 - y) * np.log1p(-x))
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
binary_cross_entropy_forward(const T* __restrict__ x, const T* __restrict__ y,
                             T* __restrict__ losses, T* __restrict__ sums, long long n, T divisor)
{
    const auto loss = [](T p, T label) {
        const T yes = label * limited_log(log(p));
        const T no = (T(1) - label) * limited_log(log1p(-p));
        const T sum = T(0) - (yes + no);  // unlike a negation, never -0
        return label < T(0) || label > T(1) ? T(NAN) : sum;
    };
    write_losses(losses, sums, n, divisor, loss, reads(x), reads(y));
}

// gloss (n) T in where `each` is 1, (1) where it is 0; x, y (n) T in; gx, gy (n) T out or null.
// numpy: gx = scale * gloss * (x - y) / np.maximum(x * (1 - x), 1e-12)
//        gy = scale * gloss * (np.log1p(-x) - np.log(x))
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
binary_cross_entropy_backward(const T* __restrict__ gloss, const T* __restrict__ x,
                              const T* __restrict__ y, T* __restrict__ gx, T* __restrict__ gy,
                              long long n, T scale, int each)
{
    const auto slopes = [=](T g, T p, T label, T& of_x, T& of_y) {
        if (gx)
            of_x = (p - label) / limited_variance(p) * g;
        if (gy)
            of_y = (limited_log(log1p(-p)) - limited_log(log(p))) * g;
    };
    with_upstream(gloss, each, n, scale, slopes, reads(x), reads(y), writes_if_any(gx),
                  writes_if_any(gy));
}
