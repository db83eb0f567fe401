// Scaled dot-product attention in tiles, forward and backward: no matrix of scores is ever written.
//
// L S       queries and keys          E F   features of queries and keys, of values and outputs
// q (batch, L, E), k (batch, S, E), v (batch, S, F), o (batch, L, F)
// lse (batch, L)    for each query the logarithm of the sum of its exponentials, which is all that
//                   backward needs to make the weights again
//
//   s[i, j] = scale * q[i] . k[j] + mask[i, j]       p[i, j] = exp(s[i, j] - lse[i])
//
//          keys ->                    forward, query gradients: a block owns a tile of queries and
//        .-------.-------.-------.    goes through the tiles of keys
// que-   |   x   |   x   |   .   |    key and value gradients: a block owns a tile of keys and goes
// ries   :-------+-------+-------:    through the tiles of queries
//   |    |   x   |   x   |   x   |    . is left out where attention is causal
//        '-------'-------'-------'
//
// The softmax of a row is made while its tiles go by: of what was seen so far there is the maximum m,
// the sum l of exp(s - m), and the sum of exp(s - m) * v.  A tile with a larger maximum m' scales the
// two sums by exp(m - m').
//
// instances (HEAD=32, TILE=32): attention_forward<float>, attention_queries<float>, attention_keys<float>
// instances (HEAD=64, TILE=32): attention_forward<float>, attention_queries<float>, attention_keys<float>
// instances (HEAD=128, TILE=16): attention_forward<float>, attention_queries<float>, attention_keys<float>
// instances (HEAD=32, TILE=16): attention_forward<double>, attention_queries<double>, attention_keys<double>
// instances (HEAD=64, TILE=16): attention_forward<double>, attention_queries<double>, attention_keys<double>
// instances: attention_dots<T> for T in float, double
// operations of attention_forward: 2 * batch * L * S * (E + F) + 5 * batch * L * S + 2 * o  # fewer if causal
// operations of attention_dots: 2 * rows * F
// operations of attention_queries: 2 * batch * L * S * (2 * E + F) + 6 * batch * L * S + gq  # fewer if causal
// operations of attention_keys: 4 * batch * L * S * (E + F) + 6 * batch * L * S + gk + gv  # fewer if causal
//
// Grid (ceil(rows / TILE), batch), block (128): threadIdx.x = 8 * row + column of a tile of threads; a
// thread owns TILE / 16 rows, and of each every eighth column.  A row's eight threads stand in one warp.
// Memory: tiles are read once into shared memory, neighbouring threads neighbouring features: coalesced.
// A row of a shared tile has a number more than features, so that eight rows lie in eight banks.
// Deterministic: no two threads write one element, sums go through the tiles in order.
//
// Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention: fast and memory-efficient exact attention with
// IO-awareness", NeurIPS 2022; Milakov, Gimelshein, "Online normalizer calculation for softmax",
// arXiv:1805.02867.

#include "prelude.cuh"

#ifndef HEAD
#define HEAD 64  // at least E and F
#endif
#ifndef TILE
#define TILE 32  // rows of a tile, of queries as of keys
#endif

constexpr int BLOCK = 128, ACROSS = 8, ROWS = TILE / 16, SCORES = TILE / ACROSS, WIDTH = HEAD + 1;
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

// numpy: s = scale * q @ k.T + mask; lse = np.log(np.exp(s).sum(-1)); o = np.exp(s - lse[:, None]) @ v
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_forward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                  T* __restrict__ o, T* __restrict__ lse, long long batch, long long L, long long S,
                  int E, int F, T scale, bool causal, MASK_PARAMETERS)
{
    __shared__ T queries[TILE][WIDTH], other[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const long long b = blockIdx.y, first = static_cast<long long>(blockIdx.x) * TILE;
    load(queries, q + b * L * E, first, L, E);
    T maximum[ROWS], total[ROWS], sums[ROWS][FEATURES];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        maximum[r] = -INFINITY;
        total[r] = T(0);
#pragma unroll
        for (int f = 0; f < FEATURES; ++f)
            sums[r][f] = T(0);
    }
    const long long end = causal && first + TILE < S ? first + TILE : S;
    for (long long from = 0; from < end; from += TILE) {
        __syncthreads();
        load(other, k + b * S * E, from, S, E);
        __syncthreads();
        T s[ROWS][SCORES];
        products(s, queries, other, E);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            T most = maximum[r];
#pragma unroll
            for (int c = 0; c < SCORES; ++c) {
                s[r][c] = score(s[r][c], scale, MASK, b, first + y * ROWS + r, from + x + ACROSS * c, L, S,
                                causal);
                most = s[r][c] > most ? s[r][c] : most;
            }
            most = row_max(most);
            const T level = most == -INFINITY ? T(0) : most, shrink = exp(maximum[r] - level);
            T sum = T(0);
#pragma unroll
            for (int c = 0; c < SCORES; ++c) {
                const T p = exp(s[r][c] - level);
                weights[y * ROWS + r][x + ACROSS * c] = p;
                sum += p;
            }
            total[r] = total[r] * shrink + row_sum(sum);
            maximum[r] = most;
#pragma unroll
            for (int f = 0; f < FEATURES; ++f)
                sums[r][f] *= shrink;
        }
        __syncthreads();
        load(other, v + b * S * F, from, S, F);
        __syncthreads();
        add_rows(sums, weights, other);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const long long row = first + y * ROWS + r;
        const T inverse = total[r] == T(0) ? T(0) : T(1) / total[r];
#pragma unroll
        for (int f = 0; f < FEATURES; ++f)
            sums[r][f] *= inverse;
        if (x == 0 && row < L)  // where nothing takes part, every weight is exp(-inf) = 0
            lse[b * L + row] = total[r] == T(0) ? T(INFINITY) : maximum[r] + log(total[r]);
    }
    store(o + b * L * F, sums, first, L, F, T(1));
}

// go, o (rows, F) in, dots (rows) out: what the gradient of a weight is measured against.
// numpy: dots = (go * o).sum(-1)
template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
attention_dots(const T* __restrict__ go, const T* __restrict__ o, T* __restrict__ dots, long long rows,
               int F)
{
    for (long long row = first_element(); row < rows; row += element_stride()) {
        T sum = T(0);
        for (int f = 0; f < F; ++f)
            sum += go[row * F + f] * o[row * F + f];
        dots[row] = sum;
    }
}

// numpy: p = np.exp(s - lse[:, None]); gs = p * (go @ v.T - dots[:, None]); gq = scale * gs @ k
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_queries(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                  const T* __restrict__ go, const T* __restrict__ lse, const T* __restrict__ dots,
                  T* __restrict__ gq, long long batch, long long L, long long S, int E, int F, T scale,
                  bool causal, MASK_PARAMETERS)
{
    __shared__ T queries[TILE][WIDTH], upstream[TILE][WIDTH], other[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const long long b = blockIdx.y, first = static_cast<long long>(blockIdx.x) * TILE;
    load(queries, q + b * L * E, first, L, E);
    load(upstream, go + b * L * F, first, L, F);
    T sums[ROWS][FEATURES];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int f = 0; f < FEATURES; ++f)
            sums[r][f] = T(0);
    const long long end = causal && first + TILE < S ? first + TILE : S;
    for (long long from = 0; from < end; from += TILE) {
        __syncthreads();
        load(other, v + b * S * F, from, S, F);
        __syncthreads();
        T s[ROWS][SCORES], g[ROWS][SCORES];
        products(g, upstream, other, F);
        __syncthreads();
        load(other, k + b * S * E, from, S, E);
        __syncthreads();
        products(s, queries, other, E);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const long long i = first + y * ROWS + r;
            const T of_row = i < L ? lse[b * L + i] : T(INFINITY), dot = i < L ? dots[b * L + i] : T(0);
#pragma unroll
            for (int c = 0; c < SCORES; ++c) {
                const T p = exp(score(s[r][c], scale, MASK, b, i, from + x + ACROSS * c, L, S, causal)
                                - of_row);
                weights[y * ROWS + r][x + ACROSS * c] = p * (g[r][c] - dot);
            }
        }
        __syncthreads();
        add_rows(sums, weights, other);
    }
    store(gq + b * L * E, sums, first, L, E, scale);
}

// numpy: gv = p.T @ go; gk = scale * gs.T @ q
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_keys(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
               const T* __restrict__ go, const T* __restrict__ lse, const T* __restrict__ dots,
               T* __restrict__ gk, T* __restrict__ gv, long long batch, long long L, long long S, int E,
               int F, T scale, bool causal, MASK_PARAMETERS)
{
    __shared__ T keys[TILE][WIDTH], values[TILE][WIDTH], other[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const long long b = blockIdx.y, first = static_cast<long long>(blockIdx.x) * TILE;
    load(keys, k + b * S * E, first, S, E);
    load(values, v + b * S * F, first, S, F);
    T of_keys[ROWS][FEATURES], of_values[ROWS][FEATURES];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int f = 0; f < FEATURES; ++f)
            of_keys[r][f] = of_values[r][f] = T(0);
    for (long long from = causal ? first : 0; from < L; from += TILE) {
        __syncthreads();
        load(other, q + b * L * E, from, L, E);
        __syncthreads();
        T p[ROWS][SCORES], g[ROWS][SCORES];
        products(p, keys, other, E);
#pragma unroll
        for (int c = 0; c < SCORES; ++c) {
            const long long i = from + x + ACROSS * c;
            const T of_row = i < L ? lse[b * L + i] : T(INFINITY);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const long long j = first + y * ROWS + r;
                p[r][c] = exp(score(p[r][c], scale, MASK, b, i, j, L, S, causal) - of_row);
                weights[y * ROWS + r][x + ACROSS * c] = p[r][c];
            }
        }
        __syncthreads();
        load(other, go + b * L * F, from, L, F);
        __syncthreads();
        add_rows(of_values, weights, other);
        products(g, values, other, F);
        __syncthreads();
        load(other, q + b * L * E, from, L, E);
#pragma unroll
        for (int c = 0; c < SCORES; ++c) {
            const long long i = from + x + ACROSS * c;
            const T dot = i < L ? dots[b * L + i] : T(0);
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                weights[y * ROWS + r][x + ACROSS * c] = p[r][c] * (g[r][c] - dot);
        }
        __syncthreads();
        add_rows(of_keys, weights, other);
    }
    store(gk + b * S * E, of_keys, first, S, E, scale);
    store(gv + b * S * F, of_values, first, S, F, T(1));
}
