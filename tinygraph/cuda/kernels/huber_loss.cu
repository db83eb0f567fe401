// Huber's loss, forward; backward is `residual_loss_backward` (losses.cu).
//
// operations of huber_loss_forward: (5 if sums else 4) * n + sums
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Bound by memory: 2 elements read, and 1 written for backward, for about 6 operations.

#include "elementwise_loss.cuh"

// x, y (n) T in, slope (n) T out or null: for backward, losses (n) T out or null,
// sums (gridDim.x) T out or null: the losses, or their sums over the divisor.
// numpy: d = x - y; slope = np.clip(d, -delta, delta); losses = slope * (d - slope / 2)
template <typename T>
__global__ void __launch_bounds__(THREADS)
huber_loss_forward(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ slope,
                   T* __restrict__ losses, T* __restrict__ sums, long long n, T divisor, T delta)
{
    write_losses(losses, sums, n, divisor, [=](long long i) {
        const T d = x[i] - y[i];
        const T clipped = d < -delta ? -delta : d > delta ? delta : d;  // a NaN stays
        if (slope)
            slope[i] = clipped;
        return clipped * (d - clipped / T(2));
    });
}
