// Loaders for gemm_pipelined.cuh and gemm_mma.cuh that read a convolution's operands where they
// lie: the columns of im2col are made in shared memory, one panel at a time, and never written to
// global memory.
//
//   N C H W    images           O KH KW   filters         OH OW   outputs of an image, P = OH * OW
//   G          groups           CG OG     channels and filters of one group, C / G and O / G
//
// In each loader a thread fills one column x of the panel, the same in all steps, for the width of
// a panel divides 256.  What the column stands for is worked out once for a tile.
//
// GEMM_MMA as in gemm_problem.cuh, T being float: the tile is computed on tensor cores.
#pragma once

#include "gemm_pipelined.cuh"

#ifdef GEMM_ON_TENSOR_CORES
#include "gemm_mma.cuh"

static_assert(Pipelined<float>::TM == MMA_TILE, "the grid is the same");

constexpr int NEIGHBOURS = 2;  // that a writer gets

template <typename T>
using LeftMatrix = MmaMatrix<true>;
#else
constexpr int NEIGHBOURS = 4;

template <typename T>
using LeftMatrix = PanelMatrix<T, true>;
#endif

// What a thread fetches of its column of a panel: COUNT neighbours of the summed axis in a step.
template <typename T, int TX>
struct ColumnLoader {
    static constexpr int COUNT = STEP * TX / THREADS;
    T some[COUNT];

    static __device__ __forceinline__ int k(int i) { return threadIdx.x / TX * COUNT + i; }
    __device__ __forceinline__ void begin(int, int) {}
    template <typename Panel>
    __device__ __forceinline__ void store(Panel &panel) const
    {
#ifdef GEMM_ON_TENSOR_CORES
        store_rounded(panel, threadIdx.x % TX, k(0), some);
#else
#pragma unroll
        for (int i = 0; i < COUNT; ++i) panel[k(i)][threadIdx.x % TX] = some[i];
#endif
    }
};

// One tile of a product: the sum over `terms` with K numbers each, or over one chunk of it.
template <typename T, typename LoaderA, typename LoaderB, typename Writer>
__device__ __forceinline__ void convolution_tile(LoaderA &a, LoaderB &b, int terms,
                                                 int K, int chunks, int chunk, Writer write)
{
    const SumSteps steps(terms, K, chunks, chunk);
#ifdef GEMM_ON_TENSOR_CORES
    mma_tile(a, b, steps, write);
#else
    pipelined_tile<T>(a, b, steps, write);
#endif
}

struct Convolution {
    int N, C, H, W, O, KH, KW, OH, OW, SH, SW, top, left, DH, DW, G;

    __device__ __forceinline__ int group_channels() const { return C / G; }
    __device__ __forceinline__ int group_filters() const { return O / G; }
    __device__ __forceinline__ int outputs() const { return OH * OW; }
    __device__ __forceinline__ int taps() const { return group_channels() * KH * KW; }
};

// A kernel takes these numbers one by one, and makes `const Convolution at = CONVOLUTION` of them.
#define CONVOLUTION_PARAMETERS                                                                   \
    int N, int C, int H, int W, int O, int KH, int KW, int OH, int OW, int SH, int SW, int top,  \
        int left, int DH, int DW, int G
#define CONVOLUTION {N, C, H, W, O, KH, KW, OH, OW, SH, SW, top, left, DH, DW, G}

// Element (tap, output of any image): the pixel that the tap reads; forward's right factor.
template <typename T>
struct ImageColumns : ColumnLoader<T, Pipelined<T>::TN> {
    static constexpr int TX = Pipelined<T>::TN;
    const Convolution& at;
    const T* image;  // the group's first channel of the column's image
    int h0, w0;      // the pixel that the column's window begins on
    bool inside;

    __device__ ImageColumns(const Convolution& at, const T* x, int group, long long column0)
        : at(at)
    {
        const long long column = column0 + threadIdx.x % TX;
        const int output = static_cast<int>(column % at.outputs());
        const long long n = column / at.outputs();
        inside = n < at.N;
        image = x + (n * at.C + group * at.group_channels()) * at.H * at.W;
        h0 = output / at.OW * at.SH - at.top;
        w0 = output % at.OW * at.SW - at.left;
    }

    __device__ __forceinline__ void fetch(int, int k0)
    {
#pragma unroll
        for (int i = 0; i < this->COUNT; ++i) {
            const int tap = k0 + this->k(i), c = tap / (at.KH * at.KW);
            const int h = h0 + tap / at.KW % at.KH * at.DH, w = w0 + tap % at.KW * at.DW;
            const bool real = inside && tap < at.taps() && 0 <= h && h < at.H && 0 <= w && w < at.W;
            this->some[i] = real ? image[((long long)c * at.H + h) * at.W + w] : T(0);
        }
    }
};

// Element (output of image s, tap): the same pixel; the right factor of the weights' gradient.
template <typename T>
struct ImageRows : ColumnLoader<T, Pipelined<T>::TN> {
    static constexpr int TX = Pipelined<T>::TN;
    const Convolution& at;
    const T* channel;  // of image 0, that the column's tap reads
    int row, column;   // of the tap
    bool inside;

    __device__ ImageRows(const Convolution& at, const T* x, int group, int tap0) : at(at)
    {
        const int tap = tap0 + threadIdx.x % TX, c = tap / (at.KH * at.KW);
        inside = tap < at.taps();
        channel = x + (long long)(group * at.group_channels() + c) * at.H * at.W;
        row = tap / at.KW % at.KH * at.DH - at.top;
        column = tap % at.KW * at.DW - at.left;
    }

    __device__ __forceinline__ void fetch(int s, int k0)
    {
        const T* image = channel + (long long)s * at.C * at.H * at.W;
#pragma unroll
        for (int i = 0; i < this->COUNT; ++i) {
            const int output = k0 + this->k(i);
            const int h = output / at.OW * at.SH + row, w = output % at.OW * at.SW + column;
            const bool real =
                inside && output < at.outputs() && 0 <= h && h < at.H && 0 <= w && w < at.W;
            this->some[i] = real ? image[(long long)h * at.W + w] : T(0);
        }
    }
};

// Element (filter, pixel of any image) for tap s of KH * KW: the gradient of the output that reads
// the pixel with this tap; the right factor of the input's gradient.
template <typename T>
struct OutputColumns : ColumnLoader<T, Pipelined<T>::TN> {
    static constexpr int TX = Pipelined<T>::TN;
    const Convolution& at;
    const T* image;  // the group's first filter of the column's image in gy
    int h, w;        // the column's pixel, counted in the padded image
    bool inside;

    __device__ OutputColumns(const Convolution& at, const T* gy, int group, long long column0)
        : at(at)
    {
        const long long column = column0 + threadIdx.x % TX, n = column / (at.H * at.W);
        const int pixel = static_cast<int>(column % (at.H * at.W));
        inside = n < at.N;
        image = gy + (n * at.O + group * at.group_filters()) * at.outputs();
        h = pixel / at.W + at.top;
        w = pixel % at.W + at.left;
    }

    __device__ __forceinline__ void fetch(int s, int k0)
    {
        const int u = h - s / at.KW * at.DH, v = w - s % at.KW * at.DW;
        const bool real = inside && u >= 0 && v >= 0 && u % at.SH == 0 && v % at.SW == 0 &&
                          u / at.SH < at.OH && v / at.SW < at.OW;
        const T* from = image + u / at.SH * at.OW + v / at.SW;
#pragma unroll
        for (int i = 0; i < this->COUNT; ++i) {
            const int k = k0 + this->k(i);
            this->some[i] =
                real && k < at.group_filters() ? from[(long long)k * at.outputs()] : T(0);
        }
    }
};

// Element (channel, filter) for tap s of KH * KW: the left factor of the input's gradient.
template <typename T>
struct FilterTap : ColumnLoader<T, Pipelined<T>::TM> {
    static constexpr int TX = Pipelined<T>::TM;
    const Convolution& at;
    const T* filters;  // the group's first one, in the column's channel
    bool inside;

    __device__ FilterTap(const Convolution& at, const T* w, int group, int channel0) : at(at)
    {
        const int c = channel0 + threadIdx.x % TX;
        inside = c < at.group_channels();
        filters = w + (long long)group * at.group_filters() * at.taps() + c * at.KH * at.KW;
    }

    __device__ __forceinline__ void fetch(int s, int k0)
    {
#pragma unroll
        for (int i = 0; i < this->COUNT; ++i) {
            const int k = k0 + this->k(i);
            this->some[i] = inside && k < at.group_filters()
                                ? filters[(long long)k * at.taps() + s]
                                : T(0);
        }
    }
};

// Neighbours of a result: row `row` of a group, columns that run over all images, `size` of
// each; y is (N, channels, size).
template <typename T, typename Epilogue>
__device__ __forceinline__ void write_to_images(T* y, const T (&some)[NEIGHBOURS], int row,
                                                int rows, int first_channel, int channels,
                                                long long column, long long columns, int size,
                                                Epilogue epilogue)
{
    if (row >= rows) return;
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) {
        if (column + j >= columns) break;
        const long long n = (column + j) / size;
        const int place = static_cast<int>((column + j) % size);
        const int channel = first_channel + row;
        y[(n * channels + channel) * size + place] = epilogue(some[j], channel);
    }
}
