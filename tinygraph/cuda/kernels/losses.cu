// What losses between two arrays share: the last step of a sum, and the way back of those that are
// a function of x - y.
//
// operations of loss_finish: n + 1
// operations of residual_loss_backward: 2 * n
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Bound by memory: backward moves 3 elements for one product.

#include "elementwise_loss.cuh"

// partial (n) T in, loss (1) T out.  One block.
// numpy: loss = partial.sum() / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
loss_finish(const T* __restrict__ partial, T* __restrict__ loss, long long n, T divisor)
{
    write_losses<T>(nullptr, loss, n, divisor, [=](long long i) { return partial[i]; });
}

// gloss (n) T in where `each` is 1, (1) where it is 0; slope (n) T in: of the loss, but for a
// factor that is part of `scale`; gx, gy (n) T out or null.
// numpy: gx = scale * gloss * slope; gy = -gx
template <typename T>
__global__ void __launch_bounds__(THREADS)
residual_loss_backward(const T* __restrict__ gloss, const T* __restrict__ slope,
                       T* __restrict__ gx, T* __restrict__ gy, long long n, T scale, int each)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = slope[i] * upstream(gloss, each, i, scale);
        if (gx)
            gx[i] = g;
        if (gy)
            gy[i] = -g;
    }
}
