// Global average pooling, forward and backward.
//
// instances (PLANE_THREADS=32): global_avg_pool2d_forward<T>,
//            global_avg_pool2d_backward<T> for T in float, double
// instances (PLANE_THREADS=256): global_avg_pool2d_forward<T> for T in float, double
// operations of global_avg_pool2d_forward: x + planes
// operations of global_avg_pool2d_backward: n
//
//     planes = N * C      pixels = H * W, side by side in memory
//
// Forward, a group of PLANE_THREADS threads owns a plane: a warp, or for large images the block.
// Thread t of it adds every PLANE_THREADS-th pixel from t on, in runs of a few pixels whose sums
// are then added up: one long sum would round each time to the size of the whole.
// Grid (ceil(planes / (256 / PLANE_THREADS))), block (256).
// Backward, a thread owns elements i, i + stride, ... of gx.
// Grid (min(ceil(n / 256), 1024)), block (256).
// Memory: neighbouring threads touch neighbouring pixels, each once: fully coalesced.
// Deterministic: the sums are taken in a fixed order, which depends on `pixels` alone.

#include "reduce.cuh"

#ifndef PLANE_THREADS
#define PLANE_THREADS 32
#endif

constexpr int RUN = 32;  // pixels that are added one after the other

// x (planes, pixels) T in, y (planes) T out.
// numpy: y = x.mean(axis=1)
template <typename T>
__global__ void __launch_bounds__(THREADS)
global_avg_pool2d_forward(const T* __restrict__ x, T* __restrict__ y, long long planes,
                          long long pixels)
{
    __shared__ T scratch[WARPS];
    const long long plane = group_number<PLANE_THREADS>();
    if (plane >= planes)
        return;  // the whole group together, so nobody waits for it
    const T* image = x + plane * pixels;
    T sum = 0;
    for (long long i = threadIdx.x % PLANE_THREADS; i < pixels;) {
        T run = 0;
        for (int turn = 0; turn < RUN && i < pixels; ++turn, i += PLANE_THREADS)
            run += image[i];
        sum += run;
    }
    sum = reduce_group<Sum, PLANE_THREADS>(sum, scratch);
    if (threadIdx.x % PLANE_THREADS == 0)
        y[plane] = sum / static_cast<T>(pixels);
}

// gy (planes) T in, gx (planes, pixels) T out.  n = planes * pixels.
// numpy: gx = np.broadcast_to(gy[:, None] / pixels, gx.shape)
template <typename T>
__global__ void __launch_bounds__(THREADS)
global_avg_pool2d_backward(const T* __restrict__ gy, T* __restrict__ gx, long long n,
                           long long pixels)
{
    for (long long i = first_element(); i < n; i += element_stride())
        gx[i] = gy[i / pixels] / static_cast<T>(pixels);
}
