// Convolution, ReLU, max-pooling and a linear layer over all pooled values: a small network in one.
//
//   see conv2d_relu_max_pool2d.cuh for N C H W D KH KW PH PW P, the argmax and the device functions
//   O              outputs of the linear layer           head (O, D * P)    its weights
//
// The pooled values are written once, in forward, and read once, in backward.  Their gradient,
//     g[n, d, p] = sum over o of gy[n, o] * head[o, d * P + p]
// is as large as they are, and is never written: whoever needs an element computes it.
//
// conv2d_relu_max_pool2d_linear_forward
//   A block owns 32 filters of IMAGES images.  It pools them as conv2d_relu_max_pool2d.cu does,
//   then multiplies what it has written, still in cache, with its part of head: a thread owns every
//   256th pooled value, in OUTS outputs of IMAGES images at a time.
//   Grid (ceil(D / 32), min(ceil(N / IMAGES), 65535)); block 256.
//     x (N, C, H, W), w (D, C, KH, KW), b (D,), head (O, D * P)   T, read
//     pooled (N, D, P) T, argmax (N, D, P) unsigned char or null   written
//     partial (ceil(D / 32), N, O) T   written
//   Memory: of head a thread reads OUTS numbers for OUTS * IMAGES multiply-adds, neighbours
//   neighbouring ones; head is fetched ceil(N / IMAGES) times, from L2.
//   numpy: partial[i] = pooled[:, 32 * i : 32 * (i + 1)].reshape(N, -1) @ head's part.T
//
// sum_of_chunks
//   A thread owns one element of y.  Grid (min(ceil(N * O / 256), 1024)); block 256.
//     partial (chunks, N, O), bias (O,)   T, read        y (N, O)   T, written
//   numpy: y = partial.sum(0) + bias
//
// conv2d_relu_max_pool2d_linear_backward
//   A block owns one filter and one chunk of images, for OUTS outputs and TAPS taps; a thread owns
//   every 256th window of all these images, so that it holds head and its gradient in registers.
//   Grid (D, chunks, max(ceil(O / 10), ceil(taps / 9))); block 256.  With at most 10 outputs and 9
//   taps pooled and argmax are read once; else once for each turn of the third axis.
//     gy (N, O), head (O, D * P), x (N, C, H, W), pooled (N, D, P) T   read
//     argmax (N, D, P) unsigned char   read
//     gw (chunks, D, taps), gb (chunks, D), ghead (chunks, O, D * P)   T or null, written
//   Memory: neighbours read neighbouring pooled, argmax and head; gy from L1, the same for all.
//   numpy: ghead = gy.T @ pooled; g = gy @ head, gw and gb from it as in conv2d_relu_max_pool2d.cu
//
// conv2d_relu_max_pool2d_linear_input_gradient
//   As conv2d_relu_max_pool2d_input_gradient, with g computed where a window sends one.
//     gy (N, O), head (O, D * P), w (D, C, KH, KW) T, argmax (N, D, P) unsigned char   read
//     gx (N, C, H, W) T   written
//
// Deterministic; the parts of gw, gb and ghead of several chunks are added by column_sums.
//
// __launch_bounds__(256, 2): 128 registers a thread.  In float, forward holds 32 sums of the
// convolution and then 40 of logits, never both: 119 registers on sm_90; backward 10 numbers of
// head and 10 + 10 sums: 96.  Two blocks, 16 warps of 64, stay on a multiprocessor: a quarter, which is
// the price of sums in registers.  With POOL 3 in double forward would spill, and has one block.
//
// operations of conv2d_relu_max_pool2d_linear_forward: pooled * (POOL**2 * (2*C*KH*KW + 1) + 2*O)
// operations of sum_of_chunks: elements * (chunks + 1)
// operations of conv2d_relu_max_pool2d_linear_backward: argmax * (4 * O + 2 * C * KH * KW + 1)
// operations of conv2d_relu_max_pool2d_linear_input_gradient: argmax * 2 * C * KH * KW
// (of the backward ones: what is done if no window is NONE, each g computed once)
//
// instances (POOL=2): conv2d_relu_max_pool2d_linear_forward<T>,
//            conv2d_relu_max_pool2d_linear_backward<T>,
//            conv2d_relu_max_pool2d_linear_input_gradient<T>,
//            sum_of_chunks<T> for T in float, double
// instances (POOL=3): conv2d_relu_max_pool2d_linear_forward<T>,
//            conv2d_relu_max_pool2d_linear_backward<T>,
//            conv2d_relu_max_pool2d_linear_input_gradient<T> for T in float, double
#include "conv2d_relu_max_pool2d.cuh"

constexpr int OUTS = 10;   // outputs of the linear layer that a thread sums at a time
constexpr int IMAGES = 4;  // images for which a number of head is read once
constexpr int RESIDENT = POOL == 2 ? 2 : 1;  // blocks on a multiprocessor that forward promises

// What the pooled values of the block's filters add to outputs o0 ... of the images n0 ...
template <typename T>
__device__ __forceinline__ void partial_products(T (&scratch)[WARPS][OUTS], const T* pooled,
                                                 const T* head, T* partial, const Geometry& at,
                                                 long long n0, int images, int N, int O, int o0)
{
    const int d0 = blockIdx.x * BLOCK_FILTERS, outs = O - o0;
    const int values = min(BLOCK_FILTERS, at.D - d0) * at.windows();
    const long long features = at.pooled(1, 0);
    T sums[IMAGES][OUTS] = {};
#pragma unroll 1
    for (int i = threadIdx.x; i < values; i += THREADS) {
        const long long feature = at.pooled(0, d0) + i;
        T value[IMAGES];
#pragma unroll
        for (int m = 0; m < IMAGES; ++m)
            value[m] = m < images ? pooled[(n0 + m) * features + feature] : T(0);
#pragma unroll
        for (int o = 0; o < OUTS; ++o) {
            if (o >= outs) break;
            const T weight = head[(o0 + o) * features + feature];
#pragma unroll
            for (int m = 0; m < IMAGES; ++m) sums[m][o] += value[m] * weight;
        }
    }
#pragma unroll
    for (int m = 0; m < IMAGES; ++m) {
        const T total = reduce_many(sums[m], scratch);
        if (m < images && threadIdx.x < OUTS && threadIdx.x < outs)
            partial[((long long)blockIdx.x * N + n0 + m) * O + o0 + threadIdx.x] = total;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS, RESIDENT)
conv2d_relu_max_pool2d_linear_forward(const T* __restrict__ x, const T* __restrict__ w,
                                      const T* __restrict__ b, const T* __restrict__ head,
                                      T* pooled, unsigned char* __restrict__ argmax,
                                      T* __restrict__ partial, int N, int C, int H, int W, int D,
                                      int KH, int KW, int PH, int PW, int SH, int SW, int top,
                                      int left, int DH, int DW, int O)
{
    __shared__ __align__(16) FilterPanel<T> panel;
    __shared__ T scratch[WARPS][OUTS];
    const Geometry at = {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW};
    for (long long turn = blockIdx.y; turn * IMAGES < N; turn += gridDim.y) {
        const long long n0 = turn * IMAGES;
        const int images = static_cast<int>(min((long long)IMAGES, N - n0));
#pragma unroll 1
        for (int m = 0; m < images; ++m)
            pool_image(panel, x, w, b, pooled, argmax, at, n0 + m, blockIdx.x * BLOCK_FILTERS);
        __syncthreads();  // other threads read what this one has pooled
#pragma unroll 1
        for (int o0 = 0; o0 < O; o0 += OUTS)
            partial_products(scratch, pooled, head, partial, at, n0, images, N, O, o0);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
sum_of_chunks(const T* __restrict__ partial, const T* __restrict__ bias, T* __restrict__ y,
              long long elements, int O, int chunks)
{
    for (long long i = first_element(); i < elements; i += element_stride()) {
        T sum = 0;
        for (int chunk = 0; chunk < chunks; ++chunk) sum += partial[chunk * elements + i];
        y[i] = sum + bias[i % O];
    }
}

// g[n, d, window]: the gradient of a pooled value.
template <typename T>
struct HeadGradient {
    const T* gy;
    const T* head;
    int outs;
    Geometry at;

    __device__ __forceinline__ T operator()(long long n, int d, int window) const
    {
        const long long feature = at.pooled(0, d) + window, features = at.pooled(1, 0);
        T sum = 0;
#pragma unroll 1  // left to itself the compiler unrolls, and takes twice the registers
        for (int o = 0; o < outs; ++o) sum += gy[n * outs + o] * head[o * features + feature];
        return sum;
    }
};

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_linear_backward(const T* __restrict__ gy, const T* __restrict__ head,
                                       const T* __restrict__ x, const T* __restrict__ pooled,
                                       const unsigned char* __restrict__ argmax,
                                       T* __restrict__ gw, T* __restrict__ gb,
                                       T* __restrict__ ghead, int N, int C, int H, int W, int D,
                                       int KH, int KW, int PH, int PW, int SH, int SW, int top,
                                       int left, int DH, int DW, int O, int images_per_chunk)
{
    __shared__ T scratch[WARPS][TAPS + 1];
    __shared__ Tap taps[TAPS];
    const Geometry at = {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW};
    const HeadGradient<T> upstream = {gy, head, O, at};
    const int d = blockIdx.x, tap0 = blockIdx.z * TAPS, o0 = blockIdx.z * OUTS;
    const int outs = O - o0, taps_left = at.taps() - tap0;  // of this turn; none where below 1
    const long long first = (long long)blockIdx.y * images_per_chunk;
    const long long last = min(first + images_per_chunk, (long long)N);
    const long long features = at.pooled(1, 0);
    if (threadIdx.x < TAPS) find_tap(taps[threadIdx.x], at, tap0 + threadIdx.x);
    __syncthreads();

    T tap_sums[TAPS + 1] = {};
    for (int window = threadIdx.x; window < at.windows(); window += THREADS) {
        const long long feature = at.pooled(0, d) + window;
        T weights[OUTS], sums[OUTS] = {};
#pragma unroll
        for (int o = 0; o < OUTS; ++o)
            weights[o] = o < outs ? head[(o0 + o) * features + feature] : T(0);
        for (long long n = first; n < last; ++n) {
            const T value = pooled[n * features + feature];
            T gradient = 0;
#pragma unroll
            for (int o = 0; o < OUTS; ++o) {
                if (o >= outs) break;
                const T g = gy[n * O + o0 + o];
                sums[o] += g * value;
                gradient += g * weights[o];
            }
            const unsigned char where = argmax[n * features + feature];
            if (where == NONE || taps_left <= 0) continue;
            if (blockIdx.z > 0 || O > OUTS)  // registers hold a part of the sum, or nothing
                gradient = upstream(n, d, window);
            add_tap_gradients(tap_sums, taps, taps_left, gradient, where, x + n * at.image(), at,
                              window);
        }
#pragma unroll
        for (int o = 0; o < OUTS; ++o)
            if (ghead && o < outs)
                ghead[((long long)blockIdx.y * O + o0 + o) * features + feature] = sums[o];
    }
    write_tap_gradients(tap_sums, scratch, gw, gb, at, blockIdx.y, d, tap0);
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_linear_input_gradient(const T* __restrict__ gy, const T* __restrict__ head,
                                             const unsigned char* __restrict__ argmax,
                                             const T* __restrict__ w, T* __restrict__ gx, int N,
                                             int C, int H, int W, int D, int KH, int KW, int PH,
                                             int PW, int SH, int SW, int top, int left, int DH,
                                             int DW, int O)
{
    const Geometry at = {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW};
    const HeadGradient<T> upstream = {gy, head, O, at};
    input_gradient(upstream, argmax, w, gx, at, (long long)N * H * W);
}
