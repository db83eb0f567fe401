// Convolution, bias, ReLU and max-pooling in one, forward and backward.
//
//   see conv2d_relu_max_pool2d.cuh for the dimensions, the argmax and the device functions
//
// conv2d_relu_max_pool2d_forward
//   A block owns 32 filters of one image; a thread owns FILTERS filters (8, or 4 where POOL is 3)
//   of one window at a time: FILTERS * POOL^2 outputs of the convolution stay in registers.
//   Grid (ceil(D / 32), min(N, 65535)); block 256.
//     x (N, C, H, W), w (D, C, KH, KW), b (D,) or null   T, read
//     pooled (N, D, PH, PW) T, argmax (N, D, PH, PW) unsigned char or null   written
//   Memory: for each tap a thread reads POOL^2 pixels (from L1: neighbours read pixels POOL * SW
//   apart, and all 32 filters the same) and FILTERS weights from shared memory, the same for a
//   whole warp, 16 bytes at a time.  With POOL 2: 6 reads for 32 multiply-adds.
//   numpy: y = np.maximum(conv2d(x, w, b), 0); pooled = y's windows.max((3, 5)); argmax the same
//
// conv2d_relu_max_pool2d_backward
//   A block owns one filter, one chunk of images and TAPS of its taps; a thread every 256th window.
//   Grid (D, chunks, ceil(taps / 9)); block 256.  gy and argmax are read once for every 9 taps: one
//   channel of 3x3 is one reading; for many channels the unfused ops do better.
//     gy (N, D, P) T, x (N, C, H, W) T, argmax (N, D, P) unsigned char   read
//     gw (chunks, D, taps) T or null, gb (chunks, D) T or null           written
//   A chunk of images has less than 2^31 windows of one filter.
//   Memory: neighbours read neighbouring gy and argmax, and scattered pixels of one image, from L1.
//   numpy: g = zeros of the convolution's output, gy at the argmax; gw, gb = conv2d's backward of g
//
// conv2d_relu_max_pool2d_input_gradient
//   A thread owns one pixel in 4 channels.  Grid (min(ceil(N * H * W / 256), 1024), ceil(C / 4));
//   block 256.
//     gy (N, D, P) T, argmax (N, D, P) unsigned char, w (D, C, KH, KW) T   read
//     gx (N, C, H, W) T   written
//   Memory: neighbours read the same or neighbouring windows, POOL of them each.
//   numpy: gx = conv2d's backward of g, as above
//
// Deterministic; the parts of gw and gb of several chunks are added by column_sums (linear.cu).
//
// __launch_bounds__(256, 2): 128 registers a thread.  Forward holds 32 sums (36 for POOL 3), pixels
// and weights: 90 registers in float on sm_90, 122 in double, where the compiler's own aim of 64
// would spill.  Two blocks, 16 warps of 64, stay on a multiprocessor: enough where each has 32
// independent sums.  Backward takes 68 in float: three blocks.
//
// operations of conv2d_relu_max_pool2d_forward: pooled * POOL * POOL * (2 * C * KH * KW + (b > 0))
// operations of conv2d_relu_max_pool2d_backward: argmax * (2 * C * KH * KW + 1)
// operations of conv2d_relu_max_pool2d_input_gradient: argmax * 2 * C * KH * KW
// (of the backward ones: what is done if no window is NONE)
//
// instances (POOL=2): conv2d_relu_max_pool2d_forward<T>, conv2d_relu_max_pool2d_backward<T>,
//            conv2d_relu_max_pool2d_input_gradient<T> for T in float, double
// instances (POOL=3): conv2d_relu_max_pool2d_forward<T>, conv2d_relu_max_pool2d_backward<T>,
//            conv2d_relu_max_pool2d_input_gradient<T> for T in float, double
#include "conv2d_relu_max_pool2d.cuh"

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_forward(const T* __restrict__ x, const T* __restrict__ w,
                               const T* __restrict__ b, T* __restrict__ pooled,
                               unsigned char* __restrict__ argmax, int N, int C, int H, int W,
                               int D, int KH, int KW, int PH, int PW, int SH, int SW, int top,
                               int left, int DH, int DW)
{
    __shared__ __align__(16) FilterPanel<T> panel;
    const Geometry at = {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW};
    for (long long n = blockIdx.y; n < N; n += gridDim.y)
        pool_image(panel, x, w, b, pooled, argmax, at, n, blockIdx.x * BLOCK_FILTERS);
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_backward(const T* __restrict__ gy, const T* __restrict__ x,
                                const unsigned char* __restrict__ argmax, T* __restrict__ gw,
                                T* __restrict__ gb, int N, int C, int H, int W, int D, int KH,
                                int KW, int PH, int PW, int SH, int SW, int top, int left, int DH,
                                int DW, int images_per_chunk)
{
    __shared__ T scratch[WARPS][TAPS + 1];
    __shared__ Tap taps[TAPS];
    const Geometry at = {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW};
    const int d = blockIdx.x, tap0 = blockIdx.z * TAPS, windows = at.windows();
    const long long first = (long long)blockIdx.y * images_per_chunk;
    const int images = static_cast<int>(min((long long)images_per_chunk, N - first));
    if (threadIdx.x < TAPS) find_tap(taps[threadIdx.x], at, tap0 + threadIdx.x);
    __syncthreads();

    T sums[TAPS + 1] = {};
    for (int i = threadIdx.x; i < images * windows; i += THREADS) {
        const long long n = first + i / windows;
        const int window = i % windows;
        const unsigned char where = argmax[at.pooled(n, d) + window];
        if (where == NONE) continue;
        add_tap_gradients(sums, taps, at.taps() - tap0, gy[at.pooled(n, d) + window], where,
                          x + n * at.image(), at, window);
    }
    write_tap_gradients(sums, scratch, gw, gb, at, blockIdx.y, d, tap0);
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_input_gradient(const T* __restrict__ gy,
                                      const unsigned char* __restrict__ argmax,
                                      const T* __restrict__ w, T* __restrict__ gx, int N, int C,
                                      int H, int W, int D, int KH, int KW, int PH, int PW, int SH,
                                      int SW, int top, int left, int DH, int DW)
{
    const Geometry at = {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW};
    const auto upstream = [=](long long n, int d, int window) -> T {
        return gy[at.pooled(n, d) + window];
    };
    input_gradient(upstream, argmax, w, gx, at, (long long)N * H * W);
}
