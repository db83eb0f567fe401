// Half the squared error, forward; backward is `residual_loss_backward` (losses.cu).
//
// operations of half_squared_error_forward: (4 if sums else 3) * n + sums
//
// Which thread owns what, grid, block, memory and the order of the sum: elementwise_loss.cuh.
// Bound by memory: 2 elements read, and 1 written for backward, for 4 operations.

#include "elementwise_loss.cuh"

// x, y (n) T in, slope (n) T out or null: for backward, losses (n) T out or null,
// sums (gridDim.x) T out or null: the losses, or their sums over the divisor.
// numpy: slope = x - y; losses = slope * slope / 2
template <typename T>
__global__ void __launch_bounds__(THREADS)
half_squared_error_forward(const T* __restrict__ x, const T* __restrict__ y,
                           T* __restrict__ slope, T* __restrict__ losses, T* __restrict__ sums,
                           long long n, T divisor)
{
    const auto loss = [](T x, T y, T& slope) {
        slope = x - y;
        return slope * slope / T(2);
    };
    write_losses(losses, sums, n, divisor, loss, reads(x), reads(y), writes_if_any(slope));
}
