// Max-pooling, forward and backward.
//
// operations of max_pool2d_forward: 0
// operations of max_pool2d_backward: gy
//
//     planes = N * C      H W image      OH OW windows      KH KW kernel size
//     SH SW  stride       top left       padding before the first row and column
//
// Forward, a thread owns a window; backward, a thread owns a pixel and gathers what the windows
// over it give: no two threads write one element, so that no atomics are needed.
// Grid (min(ceil(elements / 256), 1024)), block (256): a grid-stride loop over the output.
// Memory: neighbouring threads write neighbouring elements, and read pixels SW apart: with stride
// 2 every sector is used by half in one request, and by the other half in the next, from cache.
// Deterministic.

#include "prelude.cuh"

// x (planes, H, W) T in, y (planes, OH, OW) T out, argmax (planes, OH, OW) int out, or null: where
// in its plane the maximum lies, h * W + w.  windows = planes * OH * OW.
// numpy: y = sliding_window_view(x padded with -inf, (KH, KW)).max(...), argmax of the same
template <typename T>
__global__ void __launch_bounds__(THREADS)
max_pool2d_forward(const T* __restrict__ x, T* __restrict__ y, int* __restrict__ argmax,
                   long long windows, int H, int W, int OH, int OW, int KH, int KW, int SH, int SW,
                   int top, int left)
{
    for (long long i = first_element(); i < windows; i += element_stride()) {
        const long long plane = i / (OH * OW);
        const int window = static_cast<int>(i - plane * (OH * OW));
        const int u = window / OW, v = window % OW;
        const int h_begin = max(u * SH - top, 0), h_end = min(u * SH - top + KH, H);
        const int w_begin = max(v * SW - left, 0), w_end = min(v * SW - left + KW, W);
        const T* image = x + plane * H * W;

        // The first pixel inside the image leads at first: so the position is in range also where
        // all are -inf or NaN.  Padding is never looked at, and so can never win.
        int where = h_begin * W + w_begin;
        T best = image[where];
        for (int h = h_begin; h < h_end; ++h) {
            for (int w = w_begin; w < w_end; ++w) {
                const T value = image[h * W + w];
                // Only what is larger wins, so the first of equals stays; the first NaN beats all.
                if (value > best || (is_nan(value) && !is_nan(best))) {
                    best = value;
                    where = h * W + w;
                }
            }
        }
        y[i] = best;
        if (argmax)
            argmax[i] = where;
    }
}

// gy (planes, OH, OW) T in, argmax (planes, OH, OW) int in, gx (planes, H, W) T out.
// pixels = planes * H * W.
// numpy: gx = zeros; np.add.at(gx.reshape(planes, H * W), (plane, argmax), gy)
template <typename T>
__global__ void __launch_bounds__(THREADS)
max_pool2d_backward(const T* __restrict__ gy, const int* __restrict__ argmax, T* __restrict__ gx,
                    long long pixels, int H, int W, int OH, int OW, int KH, int KW, int SH, int SW,
                    int top, int left)
{
    for (long long i = first_element(); i < pixels; i += element_stride()) {
        const long long plane = i / (H * W);
        const int pixel = static_cast<int>(i - plane * (H * W));
        const int h = pixel / W + top, w = pixel % W + left;  // in the padded image

        // Window u covers the rows u * SH to u * SH + KH - 1: the first and last that cover row h.
        const int u_begin = h < KH ? 0 : (h - KH) / SH + 1, u_end = min(h / SH + 1, OH);
        const int v_begin = w < KW ? 0 : (w - KW) / SW + 1, v_end = min(w / SW + 1, OW);
        T sum = 0;
        for (int u = u_begin; u < u_end; ++u) {
            for (int v = v_begin; v < v_end; ++v) {
                const long long window = (plane * OH + u) * OW + v;
                if (argmax[window] == pixel)
                    sum += gy[window];
            }
        }
        gx[i] = sum;
    }
}
