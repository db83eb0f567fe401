// Mean absolute error, forward; backward is `residual_loss_backward` (losses.cu).
//
// operations of l1_loss_forward: (2 if sums else 1) * n + sums
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Bound by memory: 2 elements read, and 1 written for backward, for about 4 operations.

#include "elementwise_loss.cuh"

// x, y (n) T in, slope (n) T out or null: for backward, losses (n) T out or null,
// sums (gridDim.x) T out or null: the losses, or their sums over the divisor.
// numpy: d = x - y; slope = np.sign(d); losses = np.abs(d)
template <typename T>
__global__ void __launch_bounds__(THREADS)
l1_loss_forward(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ slope,
                T* __restrict__ losses, T* __restrict__ sums, long long n, T divisor)
{
    const auto loss = [](T x, T y, T& slope) {
        const T d = x - y;
        slope = d > T(0) ? T(1) : d < T(0) ? T(-1) : d;  // 0 stays, and so does NaN
        return fabs(d);
    };
    write_losses(losses, sums, n, divisor, loss, reads(x), reads(y), writes_if_any(slope));
}
