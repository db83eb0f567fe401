// Mean squared error, forward and backward.
//
// instances: squared_error_each<T>, squared_error_sum<T>, squared_error_finish<T>,
//            mse_loss_backward<T> for T in float, double
//
// A thread owns elements i, i + stride, ... of the flat arrays (a grid-stride loop).
// Grid (min(ceil(n / 256), 1024)), block (256); for `finish` a single block.
// Memory: neighbouring threads touch neighbouring elements, each once: fully coalesced.
// Deterministic: the sum is taken in a fixed order (reduce.cuh), which depends on n alone.
//
// The loss is one launch where a single block has enough threads, else two: `sum` leaves a partial
// sum for each block, `finish` adds them up.  Whichever comes last divides.

#include "reduce.cuh"

// x, y (n) T in, d (n) T out or null: x - y, for backward, loss (n) T out.
// numpy: d = x - y; loss = d * d
template <typename T>
__global__ void __launch_bounds__(THREADS)
squared_error_each(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ d,
                   T* __restrict__ loss, long long n)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T residual = x[i] - y[i];
        if (d)
            d[i] = residual;
        loss[i] = residual * residual;
    }
}

// x, y (n) T in, d (n) T out or null, sums (gridDim.x) T out.
// numpy: d = x - y; sums.sum() == (d * d).sum() / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
squared_error_sum(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ d,
                  T* __restrict__ sums, long long n, T divisor)
{
    __shared__ T scratch[WARPS];
    T sum = 0;
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T residual = x[i] - y[i];
        if (d)
            d[i] = residual;
        sum += residual * residual;
    }
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum / divisor;
}

// partial (n) T in, loss (1) T out.  One block.
// numpy: loss = partial.sum() / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
squared_error_finish(const T* __restrict__ partial, T* __restrict__ loss, long long n, T divisor)
{
    __shared__ T scratch[WARPS];
    T sum = 0;
    for (long long i = threadIdx.x; i < n; i += THREADS)
        sum += partial[i];
    sum = reduce_group<Sum, THREADS>(sum, scratch);
    if (threadIdx.x == 0)
        *loss = sum / divisor;
}

// gloss (n) T in where `each` is 1, (1) where it is 0; d (n) T in; gx, gy (n) T out or null.
// scale is 2 / n for a mean, else 2.
// numpy: gx = scale * gloss * d; gy = -gx
template <typename T>
__global__ void __launch_bounds__(THREADS)
mse_loss_backward(const T* __restrict__ gloss, const T* __restrict__ d, T* __restrict__ gx,
                  T* __restrict__ gy, long long n, T scale, int each)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        const T g = d[i] * (gloss[each ? i : 0] * scale);
        if (gx)
            gx[i] = g;
        if (gy)
            gy[i] = -g;
    }
}
