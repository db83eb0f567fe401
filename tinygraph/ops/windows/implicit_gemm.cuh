// Loaders for gemm_pipelined.cuh and gemm_mma.cuh that read a convolution's operands where they
// lie: the columns of im2col are made in shared memory, one panel at a time, and never written to
// global memory.
//
//   N C H W    images           O KH KW   filters         OH OW   outputs of an image, P = OH * OW
//   G          groups           CG OG     channels and filters of one group, C / G and O / G
//
// Which pixel an element of the right factor is, depends on two numbers: on its column, which is a
// thread's own in all steps, and on the number k of the summed axis.  Both are taken apart once: the
// column when a tile begins, k by STEP threads of the block, who put what comes out into a table in
// shared memory, a step ahead.  An element is then two additions, two comparisons and a load.
//
//     forward            column: an output of an image      k: a tap (channel, row, column)
//     input's gradient   column: a pixel of an image        k: a tap (filter, row, column)
//     weights' gradient  column: a tap                      k: an output; terms: images
//
// TILE_ROWS   rows of a tile: 32, 64 or 128; for double 128 means 64, on tensor cores it is 128
// TABLE       0: without the table, each thread works out the place of each of its elements, with three
//             divisions: the step before
// GEMM_MMA    as in gemm_problem.cuh, T being float: the tile is computed on tensor cores
#pragma once

#include "gemm_pipelined.cuh"

#ifndef TILE_ROWS
#define TILE_ROWS 128
#endif
#ifndef TABLE
#define TABLE 1
#endif

template <typename T>
using ConvolutionTile = Pipelined<T, sizeof(T) == 8 && TILE_ROWS == 128 ? 64 : TILE_ROWS>;

#ifdef GEMM_ON_TENSOR_CORES
#include "gemm_mma.cuh"

static_assert(TILE_ROWS == MMA_TILE, "on tensor cores there is one tile");

constexpr int NEIGHBOURS = 2;       // that a writer gets
constexpr int BLOCKS = 1;           // that a multiprocessor has registers for

template <typename T>
using LeftMatrix = MmaMatrix<true>;
#else
constexpr int NEIGHBOURS = 4;
constexpr int BLOCKS = 2;

// A panel of 32 rows has fewer fours than the block has threads: the others do nothing.
template <typename T>
struct LeftMatrix : PanelMatrix<T, true, ConvolutionTile<T>::TM> {
    using Panel = PanelMatrix<T, true, ConvolutionTile<T>::TM>;
    using Panel::Panel;

    static __device__ __forceinline__ bool idle()
    {
        return thread_now() % THREADS >= STEP * ConvolutionTile<T>::TM / 4;
    }
    __device__ __forceinline__ void fetch(int s, int k0, bool whole, int turn)
    {
        if (idle()) return;
        Panel::fetch(s, k0, whole, turn);
    }
    template <int ROWS, int PITCH>
    __device__ __forceinline__ void store(T (&panel)[ROWS][PITCH]) const
    {
        if (idle()) return;
        Panel::store(panel);
    }
};
#endif

// Put numbers k .. of column x into a panel; on tensor cores they are rounded.
template <typename T, int ROWS, int PITCH, typename Number, int SOME>
__device__ __forceinline__ void store_numbers(Number (&panel)[ROWS][PITCH], int k, int x,
                                              const T (&some)[SOME])
{
#ifdef GEMM_ON_TENSOR_CORES
    store_rounded(&panel[x][k / ::Number::PER_WORD], some);
#else
#pragma unroll
    for (int i = 0; i < SOME; ++i) panel[k + i][x] = some[i];
#endif
}

// One tile of a product.
template <typename T, typename LoaderA, typename LoaderB, typename Writer>
__device__ __forceinline__ void convolution_tile(LoaderA &a, LoaderB &b, const SumSteps &steps,
                                                 Writer write)
{
#ifdef GEMM_ON_TENSOR_CORES
    float sum[4][4][4] = {};
    sum_tile(a, b, steps, sum);
    write_tile(sum, write);
#else
    using Tile = ConvolutionTile<T>;
    T sum[Tile::ROWS * 4][Tile::COLUMNS][4] = {};
    sum_tile<Tile>(a, b, steps, sum);
    write_tile<Tile>(sum, write);
#endif
}

struct Convolution {
    int N, C, H, W, O, KH, KW, OH, OW, SH, SW, top, left, DH, DW, G, CG, OG;

    __device__ __forceinline__ int outputs() const { return OH * OW; }
    __device__ __forceinline__ int taps() const { return CG * KH * KW; }
};

// A kernel takes these numbers one by one, and makes `const Convolution at = CONVOLUTION` of them.
#define CONVOLUTION_PARAMETERS                                                                   \
    int N, int C, int H, int W, int O, int KH, int KW, int OH, int OW, int SH, int SW, int top,  \
        int left, int DH, int DW, int G, int CG, int OG
#define CONVOLUTION {N, C, H, W, O, KH, KW, OH, OW, SH, SW, top, left, DH, DW, G, CG, OG}

// The row of a place that does not exist: no sum with another row lies in an image.
constexpr int FAR = 1 << 29;

// What a column x, and a number k of the summed axis, say of element (k, x): it lies where both
// offsets lead, if the sum of both rows is a row of the image, and that of both columns one of its
// columns.
struct Place {
    int offset, row, column;
};

// The table of places: one access of 16 bytes for each.
__device__ __forceinline__ int4 packed(const Place &p)
{
    return make_int4(p.offset, p.row, p.column, 0);
}
__device__ __forceinline__ Place unpacked(const int4 &p) { return {p.x, p.y, p.z}; }

// The same for a column, which has to tell images from each other.
struct Column {
    long long offset;
    int row, column;
};

// The right factor, as it lies in memory: Factor is one of the three below.
//
// A thread has one column x in all steps, for the width of a panel divides 256, and COUNT numbers
// that follow each other.
template <typename T, typename Factor>
struct Gathered {
    static constexpr int TX = ConvolutionTile<T>::TN, COUNT = STEP * TX / THREADS;
    static constexpr bool SHORT_WHEN_WHOLE = ConvolutionTile<T>::TM < TX;

    const Factor& factor;
    int4* places;  // 2 * STEP: of the numbers of this step and of the next one
    const Column at;
    T some[COUNT];

    // The block's threads call it together: the places of the first step.
    __device__ __forceinline__ Gathered(const Factor& factor, int4* places, int k0)
        : factor(factor), places(places), at(factor.column(threadIdx.x % TX))
    {
#if TABLE
        if (threadIdx.x < STEP) places[threadIdx.x] = packed(factor.place(k0 + threadIdx.x));
        __syncthreads();
#endif
    }

    __device__ __forceinline__ int last_whole() const { return factor.K() - STEP; }
    __device__ __forceinline__ void begin(int, int) {}
    __device__ __forceinline__ void next_term() {}

    __device__ __forceinline__ void fetch(int s, int k0, bool, int turn)
    {
        const unsigned thread = thread_now();
        const int mine = thread / TX * COUNT;
#if TABLE
        if (thread < STEP) {  // those of the next step; between two steps there is a barrier
            const int next = k0 + STEP < factor.K() ? k0 + STEP : 0;
            places[(1 - turn) * STEP + thread] = packed(factor.place(next + thread));
        }
#endif
        const T* first = in_registers(factor.first(s) + at.offset);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
#if TABLE
            const Place p = unpacked(places[turn * STEP + mine + i]);
#else
            const Place p = factor.place(k0 + mine + i);
#endif
            const bool row_inside = (unsigned)(at.row + p.row) < factor.rows();
            const bool column_inside = (unsigned)(at.column + p.column) < factor.columns();
            some[i] = T(0);
            if (row_inside & column_inside) some[i] = __ldg(first + p.offset);
        }
    }

    template <typename Panel>
    __device__ __forceinline__ void store(Panel &panel) const
    {
        const unsigned thread = thread_now();
        store_numbers(panel, thread / TX * COUNT, thread % TX, some);
    }
};

// Where a tile begins, in a result whose columns run over all images, `size` of each.  It lies in
// shared memory: what a thread needs before and after the main loop holds no registers during it.
struct TileOrigin {
    int row, image, place, size;
    int part;   // images of the chunks before this one
    int first;  // channel of the group

    // By one thread.
    template <typename Tile>
    __device__ void find(int rows, int size, int images, int chunk, int group)
    {
        const int tiles_down = (rows + Tile::TM - 1) / Tile::TM;
        const long long column = (long long)(blockIdx.x / tiles_down) * Tile::TN;
        row = blockIdx.x % tiles_down * Tile::TM;
        image = static_cast<int>(column / size);
        place = static_cast<int>(column % size);
        this->size = size;
        part = chunk * images;
        first = group * rows;
    }
};

// Forward: number k is a tap (channel, row, column), a column is an output of any image; the
// element is the pixel that the tap reads.
template <typename T>
struct ImageColumns {
    const Convolution& at;
    const T* images;  // the group's first channel of the tile's first image
    const TileOrigin& begin;

    __device__ __forceinline__ int K() const { return at.taps(); }
    __device__ __forceinline__ unsigned rows() const { return at.H; }
    __device__ __forceinline__ unsigned columns() const { return at.W; }
    __device__ __forceinline__ const T* first(int) const { return images; }

    __device__ __forceinline__ Place place(int k) const
    {
        const int c = (unsigned)k / (at.KH * at.KW), tap = k - c * at.KH * at.KW;
        const int i = (unsigned)tap / at.KW, h = i * at.DH, w = (tap - i * at.KW) * at.DW;
        return {(c * at.H + h) * at.W + w, k < K() ? h : FAR, w};
    }
    __device__ __forceinline__ Column column(int x) const
    {
        const int n = (begin.place + x) / begin.size;
        const int output = (begin.place + x) % begin.size;
        const int h = output / at.OW * at.SH - at.top, w = output % at.OW * at.SW - at.left;
        return {((long long)n * at.C * at.H + h) * at.W + w, begin.image + n < at.N ? h : FAR, w};
    }
};

// The input's gradient: number k is a tap (filter, row, column), a column is a pixel of any image;
// the element is the gradient of the output that reads the pixel with this tap.
//
// With a stride, pixels and taps have phases, what is left of row / SH and column / SW: an output reads a
// pixel with a tap of its own phase only.  That is told by sums too: rows and columns of phase p are
// moved by p times more than gy is high and wide, those of taps the other way.
template <typename T>
struct OutputColumns {
    const Convolution& at;
    const T* images;  // of gy: the group's first filter of the tile's first image
    const TileOrigin& begin;

    __device__ __forceinline__ int K() const { return at.OG * at.KH * at.KW; }
    __device__ __forceinline__ unsigned rows() const { return at.OH; }
    __device__ __forceinline__ unsigned columns() const { return at.OW; }
    // More than rows and columns of one phase are apart: no sum with another phase lies in gy.
    __device__ __forceinline__ int row_phase() const { return at.OH + at.KH * at.DH; }
    __device__ __forceinline__ int column_phase() const { return at.OW + at.KW * at.DW; }
    __device__ __forceinline__ const T* first(int) const { return images; }

    __device__ __forceinline__ Place place(int k) const
    {
        const int filter = (unsigned)k / (at.KH * at.KW), tap = k - filter * at.KH * at.KW;
        const int i = (unsigned)tap / at.KW, h = i * at.DH, w = (tap - i * at.KW) * at.DW;
        const int u = (unsigned)h / at.SH, v = (unsigned)w / at.SW;
        return {(filter * at.OH - u) * at.OW - v,
                k < K() ? -u - (h - u * at.SH) * row_phase() : FAR,
                -v - (w - v * at.SW) * column_phase()};
    }
    __device__ __forceinline__ Column column(int x) const
    {
        const int n = (begin.place + x) / begin.size;
        const int pixel = (begin.place + x) % begin.size;
        const int h = pixel / at.W + at.top, w = pixel % at.W + at.left;
        const int u = h / at.SH, v = w / at.SW;
        return {((long long)n * at.O * at.OH + u) * at.OW + v,
                begin.image + n < at.N ? u + h % at.SH * row_phase() : FAR,
                v + w % at.SW * column_phase()};
    }
};

// The weights' gradient: number k is an output of image s, a column is a tap (channel, row,
// column); the element is the pixel that the tap reads.
template <typename T>
struct ImageRows {
    const Convolution& at;
    const T* images;  // the group's first channel of the first image
    int tap0;

    __device__ __forceinline__ int K() const { return at.outputs(); }
    __device__ __forceinline__ unsigned rows() const { return at.H; }
    __device__ __forceinline__ unsigned columns() const { return at.W; }
    __device__ __forceinline__ const T* first(int s) const
    {
        return images + (long long)s * at.C * at.H * at.W;
    }

    __device__ __forceinline__ Place place(int k) const
    {
        const int u = (unsigned)k / at.OW, h = u * at.SH, w = (k - u * at.OW) * at.SW;
        return {h * at.W + w, k < K() ? h : FAR, w};
    }
    __device__ __forceinline__ Column column(int x) const
    {
        const int tap = tap0 + x, c = tap / (at.KH * at.KW);
        const int h = tap / at.KW % at.KH * at.DH - at.top, w = tap % at.KW * at.DW - at.left;
        return {((long long)c * at.H + h) * at.W + w, tap < at.taps() ? h : FAR, w};
    }
};

// The left factor of the input's gradient: element (k, x) is weight k % (KH * KW) of filter
// k / (KH * KW) in channel x.  A thread has two numbers of k in each step, k and k + 1, and every
// APART-th channel.
template <typename T>
struct TapsOfFilters {
    static constexpr int TX = ConvolutionTile<T>::TM, APART = THREADS / (STEP / 2);
    static constexpr int COUNT = TX / APART;

    const Convolution& at;
    const T* next;  // what the thread reads in the next step, for k
    int tap;        // its k % (KH * KW)
    const TileOrigin& tile;
    T some[COUNT][2];

    static __device__ __forceinline__ int k() { return thread_now() % (STEP / 2) * 2; }
    static __device__ __forceinline__ int x() { return thread_now() / (STEP / 2); }

    __device__ __forceinline__ TapsOfFilters(const Convolution& at, const T* w, int group,
                                             const TileOrigin& tile)
        : at(at), tile(tile)
    {
        next = w + (long long)group * at.OG * at.taps() + (tile.row + x()) * at.KH * at.KW;
    }

    __device__ __forceinline__ void begin(int, int k0)
    {
        const int window = at.KH * at.KW;
        tap = (k0 + k()) % window;
        next += (long long)((k0 + k()) / window) * at.taps() + tap;
    }

    __device__ __forceinline__ int last_whole() const { return at.OG * at.KH * at.KW - STEP; }
    __device__ __forceinline__ void next_term() {}

    __device__ __forceinline__ void fetch(int, int k0, bool, int)
    {
        const int window = at.KH * at.KW, filter = at.taps(), numbers = at.OG * window - k0 - k();
        const int further = tap + 1 < window ? 1 : filter - window + 1;  // to k + 1
        const int channels = at.CG - tile.row - x();
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const T* from = next + (long long)i * APART * window;
            const bool inside = i * APART < channels;
            some[i][0] = inside && numbers > 0 ? from[0] : T(0);
            some[i][1] = inside && numbers > 1 ? from[further] : T(0);
        }
        tap += STEP % window;
        next += STEP / window * filter + STEP % window;
        if (tap >= window) tap -= window, next += filter - window;
    }

    template <typename Panel>
    __device__ __forceinline__ void store(Panel &panel) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) store_numbers(panel, k(), x() + i * APART, some[i]);
    }
};

// Neighbours of a result: row `row` of a tile and a group, columns from `column` of the tile on; y is
// (chunks, N, channels, size).
template <typename T, typename Epilogue>
__device__ __forceinline__ void write_to_images(T* y, const T (&some)[NEIGHBOURS], int row,
                                                int column, const TileOrigin &tile, int rows,
                                                int channels, int images, Epilogue epilogue)
{
    int n = tile.image + (tile.place + column) / tile.size;
    int place = (tile.place + column) % tile.size;
    row += tile.row;
    if (row >= rows) return;
    const int channel = tile.first + row;
    T* to = y + ((long long)(tile.part + n) * channels + channel) * tile.size;
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) {
        if (n >= images) break;
        to[place] = epilogue(some[j], channel);
        if (++place == tile.size) place = 0, ++n, to += (long long)channels * tile.size;
    }
}
