// Convolution 3x3, bias, ReLU and max-pooling 2x2 of images of one channel, forward and backward:
// conv2d_relu_max_pool2d.cu for the one shape that is met most, with pixels and taps in registers.
//
//   IMAGE_H IMAGE_W   height and width of an image, compiled in      N    images
//   PH PW P           pooled height and width, PH * PW               D    filters
//
// A window of the pooling sees a patch of 4 x 4 pixels, and these serve its four outputs of the
// convolution for every filter.  With the size of an image compiled in, each pixel and each filter
// lies at a distance from a pointer that an instruction has room for: nothing is left to compute but
// the mathematics.  No padding, stride 1, windows apart; what fills no window is left out.
//
// What is written is what conv2d_relu_max_pool2d.cu writes: the pooled value, and in `argmax` which
// of the four outputs was the first maximum, NONE where ReLU makes it 0.  A NaN counts as larger than
// everything.
//
// single_channel_stage_forward
//   A block owns 32 filters; a thread one window of one image at a time, with all of these filters.
//   Grid (ceil(D / 32), min(ceil(N * P / 256), 65535)); block 256.  N * P below 2^31.
//     x (N, 1, H, W), w (D, 1, 3, 3), b (D,) or null   T, read
//     pooled (N, D, PH, PW) T, argmax (N, D, PH, PW) unsigned char   written
//     ARGMAX=0 is for a forward alone: argmax is null.
//   Memory: 16 reads of pixels for 32 filters, 3 reads of 16 bytes from shared memory for each, the
//   same in a warp; neighbours write neighbours.
//   sm_90, float: 59 instructions for a filter and window, 36 of them FFMA; 65 with what comes before
//   the loop over filters.
//   numpy: y = np.maximum(conv2d(x, w, b), 0); pooled = y's windows.max((3, 5)); argmax the same
//
// single_channel_stage_backward
//   A thread owns one window, in two neighbouring filters, in a chunk of images; a block as many pairs
//   of filters as it has threads for: 512, or 256 in double.  The 2 * 10 sums stay in registers for
//   all images, and the block adds those of its threads.  D is even, P at most a block.
//   Grid (ceil(D / 2 / groups), chunks); block groups * P, and the rest of a warp.
//     gy (N, D, P) T, x (N, 1, H, W) T, argmax (N, D, P) unsigned char   read
//     gw (chunks, D, 9) T or null, gb (chunks, D) T or null               written
//   Memory: neighbours read neighbouring gy and argmax; the patch of an image once for both filters,
//   two pixels at a time where W is even and x aligned.  The 9 pixels that the argmax has seen are
//   then chosen among registers: to read them there, each thread elsewhere, would be 9 reads with
//   bank conflicts for every filter.  gy and argmax of the next image are on their way meanwhile.
//   sm_90, float: 49 instructions for a filter, window and image, 9 of them FFMA.
//   numpy: g = zeros of the convolution's output, gy at the argmax; gw, gb = conv2d's backward of g
//
// single_channel_stage_linear_backward
//   The same with a linear layer on the pooled values, y (N, CLASSES) = pooled @ head^T + head_b:
//   the gradient of a pooled value is computed where it is used and never written, and that of the
//   head's weights is added up beside the taps, while the pooled value is there.
//     gy (N, CLASSES), head (CLASSES, D, P), x, pooled (N, D, P)   T, argmax   read
//     gw, gb as above, ghead (chunks, CLASSES, D, P), ghead_b (chunks, CLASSES)   T or null, written
//   Memory: pooled and argmax are read once for both layers; gy of 64 images lies in shared memory.
//   sm_90, float: 68 instructions for a filter, window and image, 29 of them FFMA; 69 with what comes
//   before and after the loop over images.  115 registers: 16 warps on a multiprocessor.
//   numpy: gy of the stage = gy @ head; ghead = gy.T @ pooled; ghead_b = gy.sum(axis=0)
//
// Deterministic: every sum is taken by one thread, or by a block in a fixed order; no atomics.  The
// parts of several chunks are added by sums_of_parts.cu.
//
// operations of single_channel_stage_forward: pooled * 72
// operations of single_channel_stage_backward: argmax * 19
// operations of single_channel_stage_linear_backward: pooled * (19 + 4 * CLASSES) + gy
//
// A pass is four filters of a window forward, two filters of a window and image backward.
// main loop of single_channel_stage_forward<float> (ARGMAX=1): at most 240 instructions
// main loop of single_channel_stage_backward<float> (IMAGE_H=28): at most 100 instructions
// main loop of single_channel_stage_linear_backward<float> (CLASSES=10): at most 140 instructions
//
// instances (IMAGE_H=28, IMAGE_W=28): single_channel_stage_backward<T> for T in float, double
// instances (IMAGE_H=28, IMAGE_W=28, ARGMAX=1): single_channel_stage_forward<float>,
//            single_channel_stage_forward<double>
// instances (IMAGE_H=28, IMAGE_W=28, ARGMAX=0): single_channel_stage_forward<float>,
//            single_channel_stage_forward<double>
// instances (IMAGE_H=28, IMAGE_W=28, CLASSES=10): single_channel_stage_linear_backward<float>,
//            single_channel_stage_linear_backward<double>
// instances (IMAGE_H=9, IMAGE_W=7): single_channel_stage_backward<T> for T in float, double
#include "packs.cuh"
#include "reduce.cuh"

#ifndef IMAGE_H
#define IMAGE_H 28
#define IMAGE_W 28
#endif
#ifndef ARGMAX
#define ARGMAX 1
#endif
#ifndef CLASSES
#define CLASSES 10
#endif

constexpr int POOL = 2, OUTPUTS = POOL * POOL;  // of the convolution, in one window
constexpr int TAPS = 9;
constexpr int PATCH = 4;             // a window sees PATCH x PATCH pixels
constexpr int H = IMAGE_H, W = IMAGE_W, PIXELS = H * W;
constexpr int PH = (H - 2) / POOL, PW = (W - 2) / POOL, P = PH * PW;
constexpr int BLOCK_FILTERS = 32;    // of a block, in forward
constexpr int PITCH = 12;            // of a filter in shared memory: taps, bias, 16-byte reads
constexpr int FILTERS = 2;           // of a thread, in backward
constexpr int IMAGES = 64;           // whose gradients of the linear layer lie in shared memory
constexpr int ROW = (CLASSES + 3) / 4 * 4;  // of them; for 16-byte reads
constexpr unsigned char NONE = 255;

// Threads of a block in backward: as many as have room where each has 128 registers, 255 in double.
template <typename T>
constexpr int BLOCK = sizeof(T) == 4 ? 512 : 256;

// A row of shared memory, 16 bytes at a time.
template <int COUNT, typename T>
__device__ __forceinline__ void read_row(T (&row)[COUNT], const T* from)
{
    constexpr int N = 16 / sizeof(T);
#pragma unroll
    for (int i = 0; i < COUNT; i += N) {
        const Pack<N, T> some = load_pack<true, N>(&from[i]);
#pragma unroll
        for (int j = 0; j < N; ++j) row[i + j] = some.at[j];
    }
}

// The pixels that a window sees, from the first one on; in PAIRS where that one is aligned.
template <bool PAIRS, typename T>
__device__ __forceinline__ void load_patch(T (&patch)[PATCH][PATCH], const T* corner)
{
#pragma unroll
    for (int i = 0; i < PATCH; ++i) {
#pragma unroll
        for (int j = 0; j < PATCH; j += 2) {
            const Pack<2, T> two = load_pack<PAIRS, 2>(&corner[i * W + j]);
            patch[i][j] = two.at[0];
            patch[i][j + 1] = two.at[1];
        }
    }
}

__device__ __forceinline__ int corner_of(int window)
{
    return window / PW * POOL * W + window % PW * POOL;
}

// ---- forward ------------------------------------------------------------------------------------

// The pooled value of a window for one filter, taps and bias; and which output it was.
template <typename T>
__device__ __forceinline__ T pool_patch(const T (&patch)[PATCH][PATCH], const T (&filter)[PITCH],
                                        int& where)
{
    T best = 0;
#pragma unroll
    for (int o = 0; o < OUTPUTS; ++o) {
        T sum = filter[TAPS];
#pragma unroll
        for (int tap = 0; tap < TAPS; ++tap)
            sum += filter[tap] * patch[o / POOL + tap / 3][o % POOL + tap % 3];
        const bool larger = o == 0 || (!(sum <= best) && !is_nan(best));  // a NaN is no less
        best = larger ? sum : best;
        where = larger ? o : where;
    }
    const bool dead = best <= T(0);
    where = dead ? NONE : where;
    return dead ? T(0) : best;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
single_channel_stage_forward(const T* __restrict__ x, const T* __restrict__ w,
                             const T* __restrict__ b, T* __restrict__ pooled,
                             unsigned char* __restrict__ argmax, int N, int D)
{
    __shared__ __align__(16) T filters[BLOCK_FILTERS][PITCH];
    const int d0 = blockIdx.x * BLOCK_FILTERS, count = min(BLOCK_FILTERS, D - d0);
    for (int i = threadIdx.x; i < count * PITCH; i += THREADS) {
        const int d = d0 + i / PITCH, tap = i % PITCH;
        T value = 0;
        if (tap < TAPS) value = w[d * TAPS + tap];
        if (tap == TAPS && b) value = b[d];
        filters[i / PITCH][tap] = value;
    }
    __syncthreads();
    for (int item = blockIdx.y * THREADS + threadIdx.x; item < N * P; item += gridDim.y * THREADS) {
        const int n = item / P, window = item % P;
        T patch[PATCH][PATCH];
        load_patch<false>(patch, x + (long long)n * PIXELS + corner_of(window));
        const long long first = ((long long)n * D + d0) * P + window;
        T* y = pooled + first;
        unsigned char* positions = argmax + first;
#pragma unroll 4
        for (int f = 0; f < count; ++f, y += P, positions += P) {
            T filter[PITCH];
            read_row(filter, filters[f]);
            int where = 0;
            *y = pool_patch(patch, filter, where);
            if (ARGMAX) *positions = where;
        }
    }
}

// ---- backward -----------------------------------------------------------------------------------

// What the gradient of one pooled value adds to those of the taps and, last, of the bias.  The output
// that was the maximum lies in the upper or lower row of its window, left or right.
template <typename T>
__device__ __forceinline__ void add_taps(T (&sums)[TAPS + 1], T gradient, bool lower, bool right,
                                         const T (&patch)[PATCH][PATCH])
{
    T rows[3][PATCH];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
#pragma unroll
        for (int j = 0; j < PATCH; ++j) rows[i][j] = lower ? patch[i + 1][j] : patch[i][j];
    }
#pragma unroll
    for (int tap = 0; tap < TAPS; ++tap) {
        const int i = tap / 3, j = tap % 3;
        sums[tap] += gradient * (right ? rows[i][j + 1] : rows[i][j]);
    }
    sums[TAPS] += gradient;
}

// The gradient of a pooled value, where it is given.
template <typename T>
struct Given {
    __device__ __forceinline__ void begin_image(int) {}
    __device__ __forceinline__ T gradient(int, T given) { return given; }
};

// The same, where a linear layer reads it: what is given is the pooled value.
template <typename T>
struct OfLinear {
    const T (&rows)[IMAGES][ROW];  // the gradients of the layer's output
    T weights[FILTERS][CLASSES], sums[FILTERS][CLASSES], row[ROW];

    __device__ __forceinline__ void begin_image(int n) { read_row(row, rows[n]); }
    __device__ __forceinline__ T gradient(int f, T pooled)
    {
        T gradient = 0;
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            sums[f][k] += row[k] * pooled;
            gradient += row[k] * weights[f][k];
        }
        return gradient;
    }
};

// The sums of a thread over some images, one after the other.
template <bool PAIRS, typename T, class Upstream>
__device__ __forceinline__ void add_images(T (&sums)[FILTERS][TAPS + 1], Upstream& upstream,
                                           const T* values, const unsigned char* argmax,
                                           const T* corner, int D, int images)
{
    T value[FILTERS];
    int where[FILTERS];
#pragma unroll
    for (int f = 0; f < FILTERS; ++f) {
        value[f] = values[f * P];
        where[f] = argmax[f * P];
    }
#pragma unroll 1
    for (int n = 0; n < images; ++n, corner += PIXELS) {
        T patch[PATCH][PATCH], gradient[FILTERS];
        bool lower[FILTERS], right[FILTERS];
        load_patch<PAIRS>(patch, corner);
        upstream.begin_image(n);
        const int step = n + 1 < images ? D * P : 0;
        values += step;
        argmax += step;
#pragma unroll
        for (int f = 0; f < FILTERS; ++f) {
            gradient[f] = upstream.gradient(f, value[f]);
            if (where[f] == NONE) gradient[f] = 0;
            lower[f] = where[f] & 2;
            right[f] = where[f] & 1;
            value[f] = values[f * P];  // of the next image, long before it is needed
            where[f] = argmax[f * P];
        }
#pragma unroll
        for (int f = 0; f < FILTERS; ++f)
            add_taps(sums[f], gradient[f], lower[f], right[f], patch);
    }
}

// Whether two pixels may be read at a time, wherever a window begins.
template <typename T>
__device__ __forceinline__ bool in_pairs(const T* x)
{
    return W % 2 == 0 && begins_a_pack<2>(x);
}

// Add up the sums of the windows of each group, and write them where its filters lie.
template <typename T>
__device__ __forceinline__ void write_taps(const T (&sums)[FILTERS][TAPS + 1],
                                           T (&scratch)[TAPS + 1][BLOCK<T>], T* gw, T* gb, int D,
                                           int groups)
{
#pragma unroll
    for (int f = 0; f < FILTERS; ++f) {
        __syncthreads();  // the sums of the filter before have been read
#pragma unroll
        for (int tap = 0; tap <= TAPS; ++tap) scratch[tap][threadIdx.x] = sums[f][tap];
        __syncthreads();
        for (int i = threadIdx.x / 32; i < groups * (TAPS + 1); i += blockDim.x / 32) {
            const int group = i / (TAPS + 1), tap = i % (TAPS + 1);
            T sum = 0;
            for (int window = threadIdx.x % 32; window < P; window += 32)
                sum += scratch[tap][group * P + window];
            sum = reduce_warp<Sum>(sum);
            const int d = (blockIdx.x * groups + group) * FILTERS + f;
            const long long row = (long long)blockIdx.y * D + d;
            if (threadIdx.x % 32 != 0 || d >= D) continue;
            if (tap < TAPS && gw) gw[row * TAPS + tap] = sum;
            if (tap == TAPS && gb) gb[row] = sum;
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(BLOCK<T>, 1)
single_channel_stage_backward(const T* __restrict__ gy, const T* __restrict__ x,
                              const unsigned char* __restrict__ argmax, T* __restrict__ gw,
                              T* __restrict__ gb, int N, int D, int groups, int images_per_chunk)
{
    __shared__ T scratch[TAPS + 1][BLOCK<T>];
    const int window = threadIdx.x % P, d = (blockIdx.x * groups + threadIdx.x / P) * FILTERS;
    const long long first = (long long)blockIdx.y * images_per_chunk;
    const int images = static_cast<int>(min((long long)images_per_chunk, N - first));
    const T* corner = x + first * PIXELS + corner_of(window);
    T sums[FILTERS][TAPS + 1] = {};
    if (threadIdx.x < groups * P && d < D) {
        const long long at = (first * D + d) * P + window;
        Given<T> upstream;
        if (in_pairs(x))
            add_images<W % 2 == 0>(sums, upstream, gy + at, argmax + at, corner, D, images);
        else
            add_images<false>(sums, upstream, gy + at, argmax + at, corner, D, images);
    }
    write_taps(sums, scratch, gw, gb, D, groups);
}

template <typename T>
__global__ void __launch_bounds__(BLOCK<T>, 1)
single_channel_stage_linear_backward(const T* __restrict__ gy, const T* __restrict__ head,
                                     const T* __restrict__ x, const T* __restrict__ pooled,
                                     const unsigned char* __restrict__ argmax, T* __restrict__ gw,
                                     T* __restrict__ gb, T* __restrict__ ghead,
                                     T* __restrict__ ghead_b, int N, int D, int groups,
                                     int images_per_chunk)
{
    __shared__ T scratch[TAPS + 1][BLOCK<T>];
    __shared__ __align__(16) T rows[IMAGES][ROW];
    const int window = threadIdx.x % P, d = (blockIdx.x * groups + threadIdx.x / P) * FILTERS;
    const bool mine = threadIdx.x < groups * P && d < D;
    const int first = blockIdx.y * images_per_chunk, last = min(first + images_per_chunk, N);
    const int place = d * P + window, size = D * P;
    OfLinear<T> upstream = {rows};
    if (mine) {
#pragma unroll
        for (int f = 0; f < FILTERS; ++f)
#pragma unroll
            for (int k = 0; k < CLASSES; ++k)
                upstream.weights[f][k] = head[(long long)k * size + place + f * P];
    }
    T sums[FILTERS][TAPS + 1] = {}, bias = 0;
    const bool pairs = in_pairs(x);
    for (int n = first; n < last; n += IMAGES) {
        const int images = min(IMAGES, last - n);
        __syncthreads();  // the rows before have been read
        for (int i = threadIdx.x; i < images * ROW; i += blockDim.x) {
            const int k = i % ROW;
            rows[i / ROW][k] = k < CLASSES ? gy[(long long)(n + i / ROW) * CLASSES + k] : T(0);
        }
        __syncthreads();
        if (threadIdx.x < CLASSES)
            for (int i = 0; i < images; ++i) bias += rows[i][threadIdx.x];
        const long long at = (long long)n * size + place;
        const T *values = pooled + at, *corner = x + (long long)n * PIXELS + corner_of(window);
        const unsigned char* where = argmax + at;
        if (mine && pairs)
            add_images<W % 2 == 0>(sums, upstream, values, where, corner, D, images);
        else if (mine)
            add_images<false>(sums, upstream, values, where, corner, D, images);
    }
    if (mine && ghead) {
#pragma unroll
        for (int f = 0; f < FILTERS; ++f)
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) {
                const long long row = (long long)blockIdx.y * CLASSES + k;
                ghead[row * size + place + f * P] = upstream.sums[f][k];
            }
    }
    if (ghead_b && blockIdx.x == 0 && threadIdx.x < CLASSES)
        ghead_b[blockIdx.y * CLASSES + threadIdx.x] = bias;
    write_taps(sums, scratch, gw, gb, D, groups);
}
