// Binary cross-entropy of logits, forward and backward.
//
// operations of binary_cross_entropy_with_logits_forward: (6 if sums else 5) * n + sums
// operations of binary_cross_entropy_with_logits_backward:
//             (1 + (5 if gx else 0) + (1 if gy else 0)) * n
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Bound by memory: forward reads 2 elements for an exponential and a logarithm; backward reads 2
// and writes 1 for each gradient, for an exponential and a division.

#include "elementwise_loss.cuh"
#include "logistic.cuh"

// x (n) T in: logits, y (n) T in: labels, losses (n) T out or null,
// sums (gridDim.x) T out or null: the losses, or their sums over the divisor.
// numpy: losses = np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))
template <typename T>
__global__ void __launch_bounds__(THREADS)
binary_cross_entropy_with_logits_forward(const T* __restrict__ x, const T* __restrict__ y,
                                         T* __restrict__ losses, T* __restrict__ sums,
                                         long long n, T divisor)
{
    write_losses(losses, sums, n, divisor, [=](long long i) {
        const T logit = x[i];
        // The tail last: where y is the class of x, all else is 0.
        return ((logit > T(0) ? logit : T(0)) - logit * y[i]) + softplus_tail(logit);
    });
}

// gloss (n) T in where `each` is 1, (1) where it is 0; x, y (n) T in; gx, gy (n) T out or null.
// numpy: gx = scale * gloss * (1 / (1 + np.exp(-x)) - y); gy = -scale * gloss * x
template <typename T>
__global__ void __launch_bounds__(THREADS)
binary_cross_entropy_with_logits_backward(const T* __restrict__ gloss, const T* __restrict__ x,
                                          const T* __restrict__ y, T* __restrict__ gx,
                                          T* __restrict__ gy, long long n, T scale, int each)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = upstream(gloss, each, i, scale);
        if (gx)
            gx[i] = (logistic(x[i]) - y[i]) * g;
        if (gy)
            gy[i] = -x[i] * g;
    }
}
