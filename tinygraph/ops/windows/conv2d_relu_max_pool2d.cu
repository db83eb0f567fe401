// Convolution, bias, ReLU and max-pooling in one, forward and backward.
//
//   N C H W    batch, input channels, height, width        D      filters
//   KH KW      kernel size, of the convolution             taps   C * KH * KW numbers of a filter
//   PH PW      pooled height and width                     P      PH * PW
//   POOL       pooling windows are POOL x POOL, and their stride is POOL: they never overlap
//
// A window covers POOL x POOL outputs of the convolution.  They live in registers only: memory sees
// the pooled value and one byte, `argmax`: which of the outputs, row by row, was the first maximum;
// NONE where ReLU makes it 0, for then no gradient comes back.  ReLU and the maximum commute, so
// ReLU is done once for each window.  A NaN counts as larger than everything, as in max_pool2d.cu.
//
// Backward looks at the pooled values alone: the gradient of the convolution's output is zero but
// at the argmax, so 1 / POOL^2 of the multiplications of a dense backward are left.
//
// Deterministic: every sum is taken by one thread, or by a block in a fixed order; no atomics.
//
// Source: for the idea of an epilogue that pools, Lavin, Gray, "Fast algorithms for convolutional
// neural networks", CVPR 2016, which fuses its transforms in the same way.
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
// Deterministic; the parts of gw and gb of several chunks are added by sums_of_parts.cu.
//
// For 3x3 filters on one channel single_channel_stage.cu takes the place of forward and backward.
//
// __launch_bounds__(256, 2): 128 registers a thread.  Forward holds 32 sums (36 for POOL 3), pixels
// and weights: 96 registers in float on sm_90, 128 in double, where the compiler's own aim of 64
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
#include "long_sum.cuh"
#include "reduce.cuh"

#ifndef POOL
#define POOL 2
#endif

constexpr int OUTPUTS = POOL * POOL;            // of the convolution, in one window
constexpr int FILTERS = POOL == 2 ? 8 : 4;      // that one thread computes at a time
constexpr int BLOCK_FILTERS = 32;               // that one block computes
constexpr int GROUPS = BLOCK_FILTERS / FILTERS;
constexpr int STEP = 32;                        // taps that lie in shared memory at a time
constexpr int PITCH = BLOCK_FILTERS + 4;        // of a row of them; keeps 16-byte reads aligned
constexpr int TAPS = 9;                         // whose gradients a thread holds in registers
constexpr int CHANNELS = 4;                     // of one pixel whose gradients a thread holds
constexpr unsigned char NONE = 255;

struct Geometry {
    int C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW;

    __device__ __forceinline__ int taps() const { return C * KH * KW; }
    __device__ __forceinline__ int windows() const { return PH * PW; }
    __device__ __forceinline__ long long image() const { return (long long)C * H * W; }
    __device__ __forceinline__ long long pooled(long long n, int d) const
    {
        return (n * D + d) * windows();
    }
};

// A kernel takes these numbers one by one, and makes `const Geometry at = GEOMETRY` of them.
#define GEOMETRY_PARAMETERS                                                                      \
    int N, int C, int H, int W, int D, int KH, int KW, int PH, int PW, int SH, int SW, int top,  \
        int left, int DH, int DW
#define GEOMETRY {C, H, W, D, KH, KW, PH, PW, SH, SW, top, left, DH, DW}

// Where a tap reads, from the pixel on which its window of the convolution begins.
struct Tap {
    int plane, row, column;
};

__device__ __forceinline__ void find_tap(Tap& found, const Geometry& at, int tap)
{
    found.plane = tap / at.KW / at.KH * at.H * at.W;
    found.row = tap / at.KW % at.KH * at.DH;
    found.column = tap % at.KW * at.DW;
}

// The pixel that a tap reads for output (u, v) of the convolution; 0 in the padding.
template <typename T>
__device__ __forceinline__ T pixel_at(const T* image, const Geometry& at, const Tap& tap, int u,
                                      int v)
{
    const int h = u * at.SH - at.top + tap.row, w = v * at.SW - at.left + tap.column;
    const bool inside = 0 <= h && h < at.H && 0 <= w && w < at.W;
    return inside ? image[tap.plane + h * at.W + w] : T(0);
}

// Four neighbours in shared memory as one 16-byte read (two for double).
template <typename T>
struct __align__(16) Four {
    T of[4];
};

template <typename T>
struct FilterPanel {
    T weights[STEP][PITCH];  // [tap][filter]
    Tap taps[STEP];
};

// ---- forward ------------------------------------------------------------------------------------

// Fill the panel with taps tap0 ... of filters d0 ...; zeros beyond the last of either.
template <typename T>
__device__ __forceinline__ void load_panel(FilterPanel<T>& panel, const T* w, const Geometry& at,
                                           int d0, int tap0)
{
    for (int i = threadIdx.x; i < STEP * BLOCK_FILTERS; i += THREADS) {
        const int tap = tap0 + i % STEP, d = d0 + i / STEP;
        const bool inside = tap < at.taps() && d < at.D;
        panel.weights[i % STEP][i / STEP] = inside ? w[(long long)d * at.taps() + tap] : T(0);
    }
    if (threadIdx.x < STEP) find_tap(panel.taps[threadIdx.x], at, tap0 + threadIdx.x);
}

// Add the panel's taps to the outputs of one window for FILTERS filters.
template <typename T>
__device__ __forceinline__ void add_taps(T (&sums)[FILTERS][OUTPUTS], const FilterPanel<T>& panel,
                                         const T* image, const Geometry& at, int count, int group,
                                         int window)
{
    const int u = window / at.PW * POOL, v = window % at.PW * POOL;
#pragma unroll 1  // one tap is work enough; more of them at a time would spill in double
    for (int t = 0; t < count; ++t) {
        T pixels[OUTPUTS];
#pragma unroll
        for (int o = 0; o < OUTPUTS; ++o)
            pixels[o] = pixel_at(image, at, panel.taps[t], u + o / POOL, v + o % POOL);
#pragma unroll
        for (int f = 0; f < FILTERS; f += 4) {
            const Four<T> four =
                *reinterpret_cast<const Four<T>*>(&panel.weights[t][group * FILTERS + f]);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int o = 0; o < OUTPUTS; ++o) sums[f + i][o] += four.of[i] * pixels[o];
            }
        }
    }
}

// Reduce the outputs of a window to its pooled value and argmax.
template <typename T>
__device__ __forceinline__ T pool_outputs(const T (&outputs)[OUTPUTS], T bias,
                                          unsigned char& where)
{
    T best = outputs[0] + bias;  // before the comparison: rounding may make two of them equal
    where = 0;
#pragma unroll
    for (int o = 1; o < OUTPUTS; ++o) {
        const T value = outputs[o] + bias;
        if (value > best || (is_nan(value) && !is_nan(best))) {
            best = value;
            where = o;
        }
    }
    if (best <= T(0)) {
        best = 0;
        where = NONE;
    }
    return best;
}

// All windows of one image after the other for the block's filters: the items, (group of filters,
// window), are dealt out to the threads: neighbours own neighbouring windows, and write neighbouring
// elements.
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_forward(const T* __restrict__ x, const T* __restrict__ w,
                               const T* __restrict__ b, T* __restrict__ pooled,
                               unsigned char* __restrict__ argmax, GEOMETRY_PARAMETERS)
{
    __shared__ __align__(16) FilterPanel<T> panel;
    const Geometry at = GEOMETRY;
    const int windows = at.windows(), taps = at.taps(), items = GROUPS * windows;
    const int d0 = blockIdx.x * BLOCK_FILTERS;
    for (long long n = blockIdx.y; n < N; n += gridDim.y) {
        for (int base = 0; base < items; base += THREADS) {  // as many turns for all: barriers
            const int item = base + threadIdx.x, group = item / windows, window = item % windows;
            T sums[FILTERS][OUTPUTS] = {};
            for (int tap0 = 0; tap0 < taps; tap0 += STEP) {
                __syncthreads();  // everyone has read the panel: the next may overwrite it
                load_panel(panel, w, at, d0, tap0);
                __syncthreads();  // the panel is complete
                if (item < items)
                    add_taps(sums, panel, x + n * at.image(), at, min(STEP, taps - tap0), group,
                             window);
            }
            if (item >= items) continue;
#pragma unroll
            for (int f = 0; f < FILTERS; ++f) {
                const int d = d0 + group * FILTERS + f;
                if (d >= at.D) break;
                unsigned char where;
                const T value = pool_outputs(sums[f], b ? b[d] : T(0), where);
                pooled[at.pooled(n, d) + window] = value;
                if (argmax) argmax[at.pooled(n, d) + window] = where;
            }
        }
    }
}

// ---- backward -----------------------------------------------------------------------------------

// Sums over the block, all at once: thread i of the first COUNT returns that of values[i].  Once in
// a kernel: nothing waits for those who still read scratch.
template <int COUNT, typename T>
__device__ __forceinline__ T reduce_many(const T (&values)[COUNT], T (&scratch)[WARPS][COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const T sum = reduce_warp<Sum>(values[i]);
        if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32][i] = sum;
    }
    __syncthreads();
    T total = 0;
    if (threadIdx.x < COUNT)
        for (int warp = 0; warp < WARPS; ++warp) total += scratch[warp][threadIdx.x];
    return total;
}

// What the gradient of one pooled value adds to those of TAPS taps.
template <typename T>
__device__ __forceinline__ void add_tap_gradients(T (&sums)[TAPS + 1], const Tap (&taps)[TAPS],
                                                  int count, T gradient, unsigned char where,
                                                  const T* image, const Geometry& at, int window)
{
    const int u = window / at.PW * POOL + where / POOL, v = window % at.PW * POOL + where % POOL;
#pragma unroll
    for (int t = 0; t < TAPS; ++t)
        if (t < count) sums[t] += gradient * pixel_at(image, at, taps[t], u, v);
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_backward(const T* __restrict__ gy, const T* __restrict__ x,
                                const unsigned char* __restrict__ argmax, T* __restrict__ gw,
                                T* __restrict__ gb, GEOMETRY_PARAMETERS, int images_per_chunk)
{
    __shared__ T scratch[WARPS][TAPS + 1];
    __shared__ Tap taps[TAPS];
    const Geometry at = GEOMETRY;
    const int d = blockIdx.x, tap0 = blockIdx.z * TAPS, windows = at.windows();
    const long long first = (long long)blockIdx.y * images_per_chunk;
    const int images = static_cast<int>(min((long long)images_per_chunk, N - first));
    if (threadIdx.x < TAPS) find_tap(taps[threadIdx.x], at, tap0 + threadIdx.x);
    __syncthreads();

    T sums[TAPS + 1] = {};  // of the taps and, last, of the bias
    LongSum<T> bias;
    for (int i = threadIdx.x; i < images * windows; i += THREADS) {
        const long long n = first + i / windows;
        const int window = i % windows;
        const unsigned char where = argmax[at.pooled(n, d) + window];
        if (where == NONE) continue;
        const T gradient = gy[at.pooled(n, d) + window];
        bias.add(gradient);
        add_tap_gradients(sums, taps, at.taps() - tap0, gradient, where, x + n * at.image(), at,
                          window);
    }
    sums[TAPS] = bias.value();
    const T total = reduce_many(sums, scratch);
    const int tap = tap0 + threadIdx.x;
    const long long row = blockIdx.y * (long long)at.D + d;
    if (gw && threadIdx.x < TAPS && tap < at.taps()) gw[row * at.taps() + tap] = total;
    if (gb && threadIdx.x == TAPS && tap0 == 0) gb[row] = total;
}

// gx (N, C, H, W): a thread owns a pixel in CHANNELS channels and gathers from the windows whose
// argmax has read it.
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
conv2d_relu_max_pool2d_input_gradient(const T* __restrict__ gy,
                                      const unsigned char* __restrict__ argmax,
                                      const T* __restrict__ w, T* __restrict__ gx,
                                      GEOMETRY_PARAMETERS)
{
    const Geometry at = GEOMETRY;
    const long long pixels = (long long)N * H * W;
    const int c0 = blockIdx.y * CHANNELS, plane = at.H * at.W;
    for (long long pixel = first_element(); pixel < pixels; pixel += element_stride()) {
        const long long n = pixel / plane;
        const int place = static_cast<int>(pixel - n * plane);
        T sums[CHANNELS] = {};
        for (int tap = 0; tap < at.KH * at.KW; ++tap) {
            const int h = place / at.W + at.top - tap / at.KW * at.DH;
            const int q = place % at.W + at.left - tap % at.KW * at.DW;
            if (h < 0 || q < 0 || h % at.SH != 0 || q % at.SW != 0) continue;
            const int u = h / at.SH, v = q / at.SW;
            if (u / POOL >= at.PH || v / POOL >= at.PW) continue;
            const int window = u / POOL * at.PW + v / POOL;
            const unsigned char output = u % POOL * POOL + v % POOL;
            for (int d = 0; d < at.D; ++d) {
                if (argmax[at.pooled(n, d) + window] != output) continue;
                const T gradient = gy[at.pooled(n, d) + window];
                const T* filter = w + (long long)d * at.taps() + tap;
#pragma unroll
                for (int i = 0; i < CHANNELS; ++i)
                    if (c0 + i < at.C) sums[i] += gradient * filter[(c0 + i) * at.KH * at.KW];
            }
        }
#pragma unroll
        for (int i = 0; i < CHANNELS; ++i)
            if (c0 + i < at.C) gx[(n * at.C + c0 + i) * plane + place] = sums[i];
    }
}
