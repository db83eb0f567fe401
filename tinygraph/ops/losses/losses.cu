// What losses share: the last step of a sum, between two arrays and of labels; and the way back of
// those that are a function of x - y.
//
// operations of loss_finish: n + 1
// operations of sum_of_partials: n + (1 if divides else 0)
// operations of residual_loss_backward: 2 * n
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Bound by memory: backward moves 3 elements for one product.

#include "elementwise_loss.cuh"
#include "label_loss.cuh"

// partial (n) T in, loss (1) T out.  One block.
// numpy: loss = partial.sum() / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
loss_finish(const T* __restrict__ partial, T* __restrict__ loss, long long n, T divisor)
{
    T* const no_losses = nullptr;
    write_losses(no_losses, loss, n, divisor, [](T sum) { return sum; }, reads(partial));
}

// partial_sums (n) T in, partial_counts (n) int64 in, sum (1) T out, count (1) int64 out.
// One block.
// numpy: count = partial_counts.sum(); sum = partial_sums.sum() / (count if divides else 1)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
sum_of_partials(const T* __restrict__ partial_sums, const long long* __restrict__ partial_counts,
                T* __restrict__ sum, long long* __restrict__ count, long long n, int divides)
{
    T partial_sum = 0;
    long long partial_count = 0;
    for (long long i = threadIdx.x; i < n; i += THREADS) {
        partial_sum += partial_sums[i];
        partial_count += partial_counts[i];
    }
    leave_sum<THREADS>(partial_sum, partial_count, sum, count, divides);
}

// gloss (n) T in where `each` is 1, (1) where it is 0; slope (n) T in: of the loss, but for a
// factor that is part of `scale`; gx, gy (n) T out or null.
// numpy: gx = scale * gloss * slope; gy = -gx
template <typename T>
__global__ void __launch_bounds__(THREADS)
residual_loss_backward(const T* __restrict__ gloss, const T* __restrict__ slope,
                       T* __restrict__ gx, T* __restrict__ gy, long long n, T scale, int each)
{
    const auto slopes = [](T g, T of_loss, T& of_x, T& of_y) {
        of_x = of_loss * g;
        of_y = -of_x;
    };
    with_upstream(gloss, each, n, scale, slopes, reads(slope), writes_if_any(gx),
                  writes_if_any(gy));
}
