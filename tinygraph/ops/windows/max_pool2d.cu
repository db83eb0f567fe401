// Max-pooling, forward and backward.
//
// operations of max_pool2d_forward: 0
// operations of max_pool2d_backward: gy
//
//     planes = N * C      H W image      OH OW windows      KH KW kernel size
//     SH SW  stride       top left       padding before the first row and column
//     DH DW  dilation     how far elements of a window lie apart
//
// Forward, a thread owns a window; backward, a thread owns a pixel and gathers what the windows
// over it give: no two threads write one element, so that no atomics are needed.
// Grid (min(ceil(elements / 256), 1024)), block (256): a grid-stride loop over the output.
// Memory: neighbouring threads write neighbouring elements, and read pixels SW apart: with stride
// 2 every sector is used by half in one request, and by the other half in the next, from cache.
// Deterministic.

#include "prelude.cuh"

// The first element inside the image of a window that begins at `start`, which may be padding.
__device__ __forceinline__ int first_inside(int start, int dilation)
{
    return start >= 0 ? start : start + (dilation - 1 - start) / dilation * dilation;
}

// x (planes, H, W) T in, y (planes, OH, OW) T out, argmax (planes, OH, OW) int out, or null: where
// in its plane the maximum lies, h * W + w.  windows = planes * OH * OW.
// numpy: y = sliding_window_view(x padded with -inf, (KH, KW)).max(...), argmax of the same
template <typename T>
__global__ void __launch_bounds__(THREADS)
max_pool2d_forward(const T* __restrict__ x, T* __restrict__ y, int* __restrict__ argmax,
                   long long windows, int H, int W, int OH, int OW, int KH, int KW, int SH, int SW,
                   int top, int left, int DH, int DW)
{
    for (long long i = first_element(); i < windows; i += element_stride()) {
        const long long plane = i / (OH * OW);
        const int window = static_cast<int>(i - plane * (OH * OW));
        const int u = window / OW, v = window % OW;
        const int h_begin = first_inside(u * SH - top, DH), w_begin = first_inside(v * SW - left, DW);
        const int h_end = min(u * SH - top + (KH - 1) * DH + 1, H);
        const int w_end = min(v * SW - left + (KW - 1) * DW + 1, W);
        const T* image = x + plane * H * W;

        // The first pixel inside the image leads at first: so the position is in range also where
        // all are -inf or NaN.  Padding is never looked at, and so can never win.
        int where = h_begin * W + w_begin;
        T best = image[where];
        for (int h = h_begin; h < h_end; h += DH) {
            for (int w = w_begin; w < w_end; w += DW) {
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
                    int top, int left, int DH, int DW)
{
    for (long long i = first_element(); i < pixels; i += element_stride()) {
        const long long plane = i / (H * W);
        const int pixel = static_cast<int>(i - plane * (H * W));
        const int h = pixel / W + top, w = pixel % W + left;  // in the padded image

        // Window u lies between the rows u * SH and u * SH + high - 1: the first and last around h.
        const int high = (KH - 1) * DH + 1, wide = (KW - 1) * DW + 1;
        const int u_begin = h < high ? 0 : (h - high) / SH + 1, u_end = min(h / SH + 1, OH);
        const int v_begin = w < wide ? 0 : (w - wide) / SW + 1, v_end = min(w / SW + 1, OW);
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
