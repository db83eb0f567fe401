// Average pooling, forward and backward.
//
// operations of avg_pool2d_forward: windows * (KH * KW + 2)  # less at padding
// operations of avg_pool2d_backward: 3 * gy * KH * KW  # less at padding
//
//     planes = N * C      H W image      OH OW windows      KH KW kernel size
//     SH SW  stride       top left       padding before the first row and column
//     bottom right        padding behind the last row and column that counts in the divisor
//
// Forward, a thread owns a window; backward, a thread owns a pixel and gathers what the windows
// over it give: no two threads write one element, so that no atomics are needed.
// Grid (min(ceil(elements / 256), 1024)), block (256): a grid-stride loop over the output.
// Memory: neighbouring threads write neighbouring elements, and read pixels SW apart: with stride
// 2 every sector is used by half in one request, and by the other half in the next, from cache.
// Deterministic: each sum is taken row by row, as long_sum.cuh has it.

#include "long_sum.cuh"

// How many elements of a window that begins at `start` count on one axis of `size` elements: with
// the padding those of the padded image, which ends at `end`; else those of the image.
__device__ __forceinline__ int counted(int start, int kernel, int size, int end, int with_padding)
{
    if (with_padding)
        return min(start + kernel, end) - start;
    return min(start + kernel, size) - max(start, 0);
}

// x (planes, H, W) T in, y (planes, OH, OW) T out.  windows = planes * OH * OW.
// numpy: y = sliding_window_view(np.pad(x, ...), (KH, KW)).sum(...) / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS)
avg_pool2d_forward(const T* __restrict__ x, T* __restrict__ y, long long windows, int H, int W,
                   int OH, int OW, int KH, int KW, int SH, int SW, int top, int left, int bottom,
                   int right, int with_padding)
{
    for (long long i = first_element(); i < windows; i += element_stride()) {
        const long long row = i / OW;  // plane * OH + u
        const int u = row % OH, v = i - row * OW;
        const int h = u * SH - top, w = v * SW - left;  // the first pixel, or padding
        const T* image = x + row / OH * H * W;
        LongSum<T> sum;
        for (int r = max(h, 0); r < min(h + KH, H); ++r) {
            for (int c = max(w, 0); c < min(w + KW, W); ++c)
                sum.add(image[static_cast<long long>(r) * W + c]);
        }
        const T high = counted(h, KH, H, H + bottom, with_padding);
        const T wide = counted(w, KW, W, W + right, with_padding);
        y[i] = sum.value() / (high * wide);
    }
}

// gy (planes, OH, OW) T in, gx (planes, H, W) T out.  pixels = planes * H * W.
// numpy: for each window gx[window] += gy / divisor
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
avg_pool2d_backward(const T* __restrict__ gy, T* __restrict__ gx, long long pixels, int H, int W,
                    int OH, int OW, int KH, int KW, int SH, int SW, int top, int left, int bottom,
                    int right, int with_padding)
{
    for (long long i = first_element(); i < pixels; i += element_stride()) {
        const long long row = i / W;  // plane * H + h
        const int h = row % H + top, w = i - row * W + left;  // in the padded image
        const T* upstream = gy + row / H * OH * OW;

        // Window u covers the rows u * SH to u * SH + KH - 1: the first and last that cover row h.
        const int u_begin = h < KH ? 0 : (h - KH) / SH + 1, u_end = min(h / SH + 1, OH);
        const int v_begin = w < KW ? 0 : (w - KW) / SW + 1, v_end = min(w / SW + 1, OW);
        LongSum<T> sum;
        for (int u = u_begin; u < u_end; ++u) {
            const T high = counted(u * SH - top, KH, H, H + bottom, with_padding);
            for (int v = v_begin; v < v_end; ++v) {
                const T wide = counted(v * SW - left, KW, W, W + right, with_padding);
                sum.add(upstream[static_cast<long long>(u) * OW + v] / (high * wide));
            }
        }
        gx[i] = sum.value();
    }
}
