// im2col: the windows of an image as columns; col2im: columns summed back into an image.
//
//   N C H W    batch, channels, height, width
//   KH KW      kernel size          OH OW      number of windows on each axis
//   window (u, v) reads at kernel offset (i, j) the pixel
//       h = u * stride_h + i * dilation_h - pad_h,   w = v * stride_w + j * dilation_w - pad_w
//
// im2col
//   One thread owns one element of cols.  Grid: all elements / 256; block 256.
//     x (N, C, H, W)   T, read                 cols (N, C*KH*KW, OH*OW)   T, written
//   Memory: neighbouring threads write neighbours, and read pixels that are stride_w apart.
//   numpy:   cols = np.pad(x, ...)[n, c, h, w] at the pixels above, zeros outside the image
//
// col2im
//   One thread owns one pixel, and gathers the elements of cols that were read from it.  Scattering
//   (one thread one column element) would need atomics, and round in another order in each run.
//   Grid: all pixels / 256; block 256.
//     cols (N, C*KH*KW, OH*OW)   T, read       image (N, C, H, W)   T, written
//   Memory: neighbouring threads write neighbours, and read neighbours of one row of cols where the
//   stride is 1.
//   numpy:   np.add.at(image, pixels, cols), in the order of (i, j)
//
// Deterministic: no atomics.  WIDE=1 counts elements in 64 bits, for arrays of 2^31 elements or
// more; divisions are several times slower then.
//
// instances (WIDE=0): im2col<T>, col2im<T> for T in float, double
// instances (WIDE=1): im2col<T>, col2im<T> for T in float, double
// operations of im2col: 0
// operations of col2im: cols  # less at padding

#include "prelude.cuh"

#ifndef WIDE
#define WIDE 1
#endif
#if WIDE
typedef long long index_t;
#else
typedef int index_t;
#endif

template <typename T>
__global__ void __launch_bounds__(THREADS)
im2col(const T* __restrict__ x, T* __restrict__ cols, int N, int C, int H, int W,
       int KH, int KW, int OH, int OW, int stride_h, int stride_w, int pad_h, int pad_w,
       int dilation_h, int dilation_w)
{
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= (long long)N * C * KH * KW * OH * OW) return;
    const index_t element = thread;

    index_t rest = element;  // element = ((((n * C + c) * KH + i) * KW + j) * OH + u) * OW + v
    const int v = rest % OW;
    rest /= OW;
    const int u = rest % OH;
    rest /= OH;
    const int j = rest % KW;
    rest /= KW;
    const int i = rest % KH;
    const index_t plane = rest / KH;  // n * C + c

    const int h = u * stride_h + i * dilation_h - pad_h;
    const int w = v * stride_w + j * dilation_w - pad_w;
    const bool inside = 0 <= h && h < H && 0 <= w && w < W;
    cols[element] = inside ? x[(plane * H + h) * W + w] : T(0);
}

// The window that reads a pixel at a kernel offset, or -1 where there is none; `reach` is where
// that window begins, counted from the first one.
__device__ __forceinline__ int window_at(int reach, int stride, int count)
{
    if (reach < 0 || reach % stride != 0 || reach / stride >= count) return -1;
    return reach / stride;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
col2im(const T* __restrict__ cols, T* __restrict__ image, int N, int C, int H, int W,
       int KH, int KW, int OH, int OW, int stride_h, int stride_w, int pad_h, int pad_w,
       int dilation_h, int dilation_w)
{
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= (long long)N * C * H * W) return;
    const index_t pixel = thread;
    const int w = pixel % W, h = pixel / W % H;
    const index_t plane = pixel / W / H;  // n * C + c

    T sum = 0;
    for (int i = 0; i < KH; ++i) {
        const int u = window_at(h + pad_h - i * dilation_h, stride_h, OH);
        if (u < 0) continue;
        for (int j = 0; j < KW; ++j) {
            const int v = window_at(w + pad_w - j * dilation_w, stride_w, OW);
            if (v >= 0) sum += cols[(((plane * KH + i) * KW + j) * OH + u) * OW + v];
        }
    }
    image[pixel] = sum;
}
