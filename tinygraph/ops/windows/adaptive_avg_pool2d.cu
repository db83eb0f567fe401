// Adaptive average pooling, forward and backward.
//
// operations of adaptive_avg_pool2d_forward: x + 2 * y  # more where windows share pixels
// operations of adaptive_avg_pool2d_backward: 3 * gx  # more where windows share pixels
//
//     planes = N * C      H W image      OH OW windows
//
// Forward, a thread owns a window; backward, a thread owns a pixel and gathers what the windows
// over it give: no two threads write one element, so that no atomics are needed.
// Grid (min(ceil(elements / 256), 1024)), block (256): a grid-stride loop over the output.
// Memory: neighbouring threads write neighbouring elements, and read pixels W / OW apart.
// Deterministic: each sum is taken row by row, as long_sum.cuh has it.

#include "long_sum.cuh"

// Of part i of an axis of `size` elements in so many parts: its first element, and the one behind
// its last.  Exchange size and parts, and it is which parts touch element i.
__device__ __forceinline__ int first_of(int i, int size, int parts)
{
    return static_cast<int>(static_cast<long long>(i) * size / parts);
}

__device__ __forceinline__ int end_of(int i, int size, int parts)
{
    return static_cast<int>((static_cast<long long>(i + 1) * size + parts - 1) / parts);
}

// x (planes, H, W) T in, y (planes, OH, OW) T out.  windows = planes * OH * OW.
// numpy: y[:, u, v] = x[:, first(u):end(u), first(v):end(v)].mean((1, 2))
template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
adaptive_avg_pool2d_forward(const T* __restrict__ x, T* __restrict__ y, long long windows,
                            int H, int W, int OH, int OW)
{
    for (long long i = first_element(); i < windows; i += element_stride()) {
        const long long row = i / OW;  // plane * OH + u
        const int u = row % OH, v = i - row * OW;
        const T* image = x + row / OH * H * W;
        const int h_first = first_of(u, H, OH), h_end = end_of(u, H, OH);
        const int w_first = first_of(v, W, OW), w_end = end_of(v, W, OW);
        LongSum<T> sum;
        for (int h = h_first; h < h_end; ++h) {
            for (int w = w_first; w < w_end; ++w)
                sum.add(image[static_cast<long long>(h) * W + w]);
        }
        y[i] = sum.value() / (static_cast<T>(h_end - h_first) * static_cast<T>(w_end - w_first));
    }
}

// gy (planes, OH, OW) T in, gx (planes, H, W) T out.  pixels = planes * H * W.
// numpy: for each window gx[window] += gy / count
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
adaptive_avg_pool2d_backward(const T* __restrict__ gy, T* __restrict__ gx, long long pixels,
                             int OH, int OW, int H, int W)
{
    for (long long i = first_element(); i < pixels; i += element_stride()) {
        const long long row = i / W;  // plane * H + h
        const int h = row % H, w = i - row * W;
        const T* upstream = gy + row / H * OH * OW;
        const int u_end = end_of(h, OH, H), v_end = end_of(w, OW, W);
        LongSum<T> sum;
        for (int u = first_of(h, OH, H); u < u_end; ++u) {
            const T high = end_of(u, H, OH) - first_of(u, H, OH);
            for (int v = first_of(w, OW, W); v < v_end; ++v) {
                const T wide = end_of(v, W, OW) - first_of(v, W, OW);
                sum.add(upstream[static_cast<long long>(u) * OW + v] / (high * wide));
            }
        }
        gx[i] = sum.value();
    }
}
