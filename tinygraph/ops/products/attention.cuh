// What the kernels of attention share: tiles, the mask, what is dropped, the score of a pair.
//
// Which thread owns what: attention.cu.

#pragma once

#include "philox.cuh"

#ifndef HEAD
#define HEAD 64  // at least E and F
#endif
#ifndef TILE
#define TILE 32  // rows of a tile, of queries as of keys
#endif

constexpr int ACROSS = 8, BLOCK = TILE < 16 ? TILE * ACROSS : 128, ROWS = TILE * ACROSS / BLOCK;
constexpr int SCORES = TILE / ACROSS, WIDTH = HEAD + 1;
constexpr int FEATURES = HEAD / ACROSS;  // of a row, those of a thread

// Where the mask has its number for a pair; a null pointer is no mask.  The batch has two axes, the
// inner one of `inner` members; a step is 0 where the mask is repeated.
#define MASK_PARAMETERS                                                                              \
    const T *__restrict__ mask, long long inner, long long outer_step, long long inner_step,         \
        long long row_step, long long column_step
#define MASK                                                                                         \
    Mask<T> { mask, inner, outer_step, inner_step, row_step, column_step }

template <typename T>
struct Mask {
    const T* numbers;
    long long inner, outer_step, inner_step, row_step, column_step;

    __device__ __forceinline__ T at(long long batch, long long i, long long j) const
    {
        if (!numbers)
            return T(0);
        const long long begin = batch / inner * outer_step + batch % inner * inner_step;
        return numbers[begin + i * row_step + j * column_step];
    }
};

// Which weights are dropped: those of words below `least`, which is 0 without dropout.  Of a part of a
// batch the words begin at `first_word`.  start (2) uint64 in or null: the seed, and what is added to the
// stream, where a graph of launches is replayed.
#define DROPOUT_PARAMETERS                                                                           \
    unsigned long long seed, unsigned long long stream, long long first_word,                        \
        unsigned long long least, T keep_scale,                                                      \
        const unsigned long long *__restrict__ start
#define DROPOUT                                                                                      \
    Dropout<T> { seed, stream, first_word, least, keep_scale, start }

template <typename T>
struct Dropout {
    unsigned long long seed, stream;
    long long first_word;
    unsigned long long least;
    T keep_scale;
    const unsigned long long* start;

    // d of the pairs from (i, j) on, of queries and keys or, `turned`, of keys and queries: four words
    // at a time, for as many as begin in a row of the tile.
    __device__ __forceinline__ void draw(T (&tile)[TILE][TILE + 1], long long batch, long long i,
                                         long long j, long long L, long long S, bool turned) const
    {
        if (!least)
            return;
        constexpr int FOURS = TILE / 4 + 1;
        const unsigned long long key = start ? start[0] : seed, of = start ? stream + start[1] : stream;
        for (int at = threadIdx.x; at < TILE * FOURS; at += BLOCK) {
            const int row = at / FOURS;
            const long long begin = first_word + (batch * L + i + row) * S + j;
            const long long four = begin / 4 + at % FOURS;
            if (4 * four - begin >= TILE)
                continue;
            const FourWords words = philox(key, of, 0, four);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const long long column = 4 * four + w - begin;
                if (column >= 0 && column < TILE)
                    tile[turned ? column : row][turned ? row : column]
                        = words.word[w] >= least ? keep_scale : T(0);
            }
        }
    }

    // d of a pair, from such a tile.
    __device__ __forceinline__ T of(const T& drawn) const { return least ? drawn : T(1); }
};

// Rows first ... of a matrix (rows, features) into a tile; 0 beyond the last row and the last feature.
template <typename T>
__device__ __forceinline__ void load(T (&tile)[TILE][WIDTH], const T* matrix, long long first,
                                     long long rows, int features)
{
    for (int at = threadIdx.x; at < TILE * HEAD; at += BLOCK) {
        const int row = at / HEAD, feature = at % HEAD;
        const bool inside = first + row < rows && feature < features;
        tile[row][feature] = inside ? matrix[(first + row) * features + feature] : T(0);
    }
}

// Of which member of the batch a block owns a tile of rows, and the first of these.
struct Place {
    long long batch, first;

    __device__ __forceinline__ explicit Place(long long rows)
    {
        const long long tiles = (rows + TILE - 1) / TILE;
        batch = blockIdx.x / tiles;
        first = blockIdx.x % tiles * TILE;
    }
};

// A thread's products of rows of a with rows of b.
template <typename T>
__device__ __forceinline__ void products(T (&s)[ROWS][SCORES], const T (&a)[TILE][WIDTH],
                                         const T (&b)[TILE][WIDTH], int features)
{
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < SCORES; ++c)
            s[r][c] = T(0);
    for (int e = 0; e < features; ++e) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const T left = a[y * ROWS + r][e];
#pragma unroll
            for (int c = 0; c < SCORES; ++c)
                s[r][c] += left * b[x + ACROSS * c][e];
        }
    }
}

// Adds to a thread's features of its rows: weights (rows, TILE) times a tile (TILE, features).
template <typename T>
__device__ __forceinline__ void add_rows(T (&sums)[ROWS][FEATURES], const T (&weights)[TILE][TILE + 1],
                                         const T (&tile)[TILE][WIDTH])
{
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    for (int j = 0; j < TILE; ++j) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const T weight = weights[y * ROWS + r][j];
#pragma unroll
            for (int f = 0; f < FEATURES; ++f)
                sums[r][f] += weight * tile[j][x + ACROSS * f];
        }
    }
}

template <typename T>
__device__ __forceinline__ void store(T* matrix, const T (&sums)[ROWS][FEATURES], long long first,
                                      long long rows, int features, T factor)
{
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const long long row = first + y * ROWS + r;
#pragma unroll
        for (int f = 0; f < FEATURES; ++f)
            if (row < rows && x + ACROSS * f < features)
                matrix[row * features + x + ACROSS * f] = sums[r][f] * factor;
    }
}

// Of the eight threads of a row: the largest number, the sum.
template <typename T>
__device__ __forceinline__ T row_max(T value)
{
#pragma unroll
    for (int step = ACROSS / 2; step; step /= 2) {
        const T other = __shfl_xor_sync(0xffffffff, value, step);
        value = other > value ? other : value;
    }
    return value;
}

template <typename T>
__device__ __forceinline__ T row_sum(T value)
{
#pragma unroll
    for (int step = ACROSS / 2; step; step /= 2)
        value += __shfl_xor_sync(0xffffffff, value, step);
    return value;
}

// The score of a pair; -inf where it takes no part.
template <typename T>
__device__ __forceinline__ T score(T product, T scale, const Mask<T>& mask, long long batch, long long i,
                                   long long j, long long queries, long long keys, bool causal)
{
    if (i >= queries || j >= keys || (causal && j > i))
        return -INFINITY;
    return product * scale + mask.at(batch, i, j);
}
