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
__global__ void __launch_bounds__(THREADS, 2)
binary_cross_entropy_with_logits_forward(const T* __restrict__ x, const T* __restrict__ y,
                                         T* __restrict__ losses, T* __restrict__ sums,
                                         long long n, T divisor)
{
    const auto loss = [](T logit, T label) {
        // The tail last: where y is the class of x, all else is 0.
        return ((logit > T(0) ? logit : T(0)) - logit * label) + softplus_tail(logit);
    };
    write_losses(losses, sums, n, divisor, loss, reads(x), reads(y));
}

// gloss (n) T in where `each` is 1, (1) where it is 0; x, y (n) T in; gx, gy (n) T out or null.
// numpy: gx = scale * gloss * (1 / (1 + np.exp(-x)) - y); gy = -scale * gloss * x
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
binary_cross_entropy_with_logits_backward(const T* __restrict__ gloss, const T* __restrict__ x,
                                          const T* __restrict__ y, T* __restrict__ gx,
                                          T* __restrict__ gy, long long n, T scale, int each)
{
    const auto slopes = [=](T g, T logit, T label, T& of_x, T& of_y) {
        if (gx)
            of_x = (logistic(logit) - label) * g;
        if (gy)
            of_y = -logit * g;
    };
    with_upstream(gloss, each, n, scale, slopes, reads(x), reads(y), writes_if_any(gx),
                  writes_if_any(gy));
}
