// Scaled dot-product attention in tiles, forward and backward: no matrix of scores is ever written.
//
// L S       queries and keys          E F   features of queries and keys, of values and outputs
// q (batch, L, E), k (batch, S, E), v (batch, S, F), o (batch, L, F)
// lse (batch, L)    for each query the logarithm of the sum of its exponentials, which is all that
//                   backward needs to make the weights again
//
//   s[i, j] = scale * q[i] . k[j] + mask[i, j]       p[i, j] = exp(s[i, j] - lse[i])
//   d[i, j] = 0 where a weight is dropped, else keep_scale: 1 without dropout
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
// Which weights are dropped follows from the place of a pair in (batch, L, S) alone: its random word is
// made wherever it is needed, in forward and again in backward, and never kept (philox.cuh).
//
// instances (HEAD=32, TILE=32): attention_forward<float>, attention_queries<float>,
//            attention_keys<float>, attention_mask<float>
// instances (HEAD=64, TILE=32): attention_forward<float>, attention_queries<float>,
//            attention_keys<float>, attention_mask<float>
// instances (HEAD=128, TILE=16): attention_forward<float>, attention_queries<float>,
//            attention_keys<float>, attention_mask<float>
// instances (HEAD=256, TILE=8): attention_forward<float>, attention_queries<float>,
//            attention_keys<float>, attention_mask<float>
// instances (HEAD=32, TILE=16): attention_forward<double>, attention_queries<double>,
//            attention_keys<double>, attention_mask<double>
// instances (HEAD=64, TILE=16): attention_forward<double>, attention_queries<double>,
//            attention_keys<double>, attention_mask<double>
// instances (HEAD=128, TILE=8): attention_forward<double>, attention_queries<double>,
//            attention_keys<double>, attention_mask<double>
// instances: attention_dots<T> for T in float, double
// operations of attention_forward: 2 * batch * L * S * (E + F) + 6 * batch * L * S + 2 * o  # fewer if causal
// operations of attention_dots: 2 * rows * F
// operations of attention_queries: 2 * batch * L * S * (2 * E + F) + 7 * batch * L * S + gq  # fewer if causal
// operations of attention_keys: 4 * batch * L * S * (E + F) + 8 * batch * L * S + gk + gv  # fewer if causal
// operations of attention_mask: 2 * batch * L * S * (E + F) + 8 * batch * L * S + gm
//
// Grid (ceil(rows / TILE) * batch), block (128, or 64 where TILE is 8): threadIdx.x = 8 * row + column of
// a tile of threads; a thread owns ROWS rows, and of each every eighth column.  A row's eight threads
// stand in one warp.
// Memory: tiles are read once into shared memory, neighbouring threads neighbouring features: coalesced.
// A row of a shared tile has a number more than features, so that eight rows lie in eight banks.
// Deterministic: no two threads write one element, sums go through the tiles in order.
//
// Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention: fast and memory-efficient exact attention with
// IO-awareness", NeurIPS 2022; Milakov, Gimelshein, "Online normalizer calculation for softmax",
// arXiv:1805.02867.

#include "attention.cuh"

// numpy: s = scale * q @ k.T + mask; lse = np.log(np.exp(s).sum(-1)); o = (p * d) @ v
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_forward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                  T* __restrict__ o, T* __restrict__ lse, long long batch, long long L, long long S,
                  int E, int F, T scale, bool causal, MASK_PARAMETERS, DROPOUT_PARAMETERS)
{
    __shared__ T queries[TILE][WIDTH], other[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const Place at(L);
    const long long b = at.batch, first = at.first;
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
        DROPOUT.draw(weights, b, first, from, L, S, false);
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
                T& weight = weights[y * ROWS + r][x + ACROSS * c];
                weight = p * DROPOUT.of(weight);
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

// numpy: p = np.exp(s - lse[:, None]); gs = p * (d * (go @ v.T) - dots[:, None]); gq = scale * gs @ k
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_queries(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                  const T* __restrict__ go, const T* __restrict__ lse, const T* __restrict__ dots,
                  T* __restrict__ gq, long long batch, long long L, long long S, int E, int F, T scale,
                  bool causal, MASK_PARAMETERS, DROPOUT_PARAMETERS)
{
    __shared__ T queries[TILE][WIDTH], upstream[TILE][WIDTH], other[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const Place at(L);
    const long long b = at.batch, first = at.first;
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
        DROPOUT.draw(weights, b, first, from, L, S, false);
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
                T& weight = weights[y * ROWS + r][x + ACROSS * c];
                weight = p * (g[r][c] * DROPOUT.of(weight) - dot);
            }
        }
        __syncthreads();
        add_rows(sums, weights, other);
    }
    store(gq + b * L * E, sums, first, L, E, scale);
}

// numpy: gv = (p * d).T @ go; gk = scale * gs.T @ q
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_keys(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
               const T* __restrict__ go, const T* __restrict__ lse, const T* __restrict__ dots,
               T* __restrict__ gk, T* __restrict__ gv, long long batch, long long L, long long S, int E,
               int F, T scale, bool causal, MASK_PARAMETERS, DROPOUT_PARAMETERS)
{
    __shared__ T keys[TILE][WIDTH], values[TILE][WIDTH], other[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const Place at(S);
    const long long b = at.batch, first = at.first;
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
        DROPOUT.draw(weights, b, from, first, L, S, true);
        __syncthreads();
        T p[ROWS][SCORES], g[ROWS][SCORES], d[ROWS][SCORES];
        products(p, keys, other, E);
#pragma unroll
        for (int c = 0; c < SCORES; ++c) {
            const long long i = from + x + ACROSS * c;
            const T of_row = i < L ? lse[b * L + i] : T(INFINITY);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const long long j = first + y * ROWS + r;
                p[r][c] = exp(score(p[r][c], scale, MASK, b, i, j, L, S, causal) - of_row);
                T& weight = weights[y * ROWS + r][x + ACROSS * c];
                d[r][c] = DROPOUT.of(weight);
                weight = p[r][c] * d[r][c];
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
                weights[y * ROWS + r][x + ACROSS * c] = p[r][c] * (g[r][c] * d[r][c] - dot);
        }
        __syncthreads();
        add_rows(of_keys, weights, other);
    }
    store(gk + b * S * E, of_keys, first, S, E, scale);
    store(gv + b * S * F, of_values, first, S, F, T(1));
}

// gm (members, L or 1, S) out: as `mask` lies, whose members are those of the axes in front that it has.
// A block owns a tile of it, and adds up the tiles of pairs that share it: of each member of the batch in
// their order, and of all queries where the mask repeats its row.
// Grid (tiles of rows * tiles of columns * members of the mask).
// numpy: gm = gs summed over the axes along which the mask is repeated
template <typename T>
__global__ void __launch_bounds__(BLOCK, 2)
attention_mask(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
               const T* __restrict__ go, const T* __restrict__ lse, const T* __restrict__ dots,
               T* __restrict__ gm, long long batch, long long L, long long S, int E, int F, T scale,
               bool causal, MASK_PARAMETERS, DROPOUT_PARAMETERS)
{
    __shared__ T left[TILE][WIDTH], right[TILE][WIDTH], weights[TILE][TILE + 1];
    const int y = threadIdx.x / ACROSS, x = threadIdx.x % ACROSS;
    const long long rows = row_step ? L : 1;
    const long long across = (S + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
    const long long row = blockIdx.x / across % down * TILE, column = blockIdx.x % across * TILE;
    const long long member = blockIdx.x / across / down, inners = inner_step ? inner : 1;
    T sums[ROWS][SCORES];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < SCORES; ++c)
            sums[r][c] = T(0);
    for (long long b = member / inners * inner + member % inners; b < batch; b += inner_step ? inner : 1) {
        if (outer_step && b / inner != member / inners)
            break;
        for (long long i0 = row; i0 < (row_step ? row + 1 : L); i0 += TILE) {
            __syncthreads();
            load(left, q + b * L * E, i0, L, E);
            load(right, k + b * S * E, column, S, E);
            DROPOUT.draw(weights, b, i0, column, L, S, false);
            __syncthreads();
            T s[ROWS][SCORES], g[ROWS][SCORES];
            products(s, left, right, E);
            __syncthreads();
            load(left, go + b * L * F, i0, L, F);
            load(right, v + b * S * F, column, S, F);
            __syncthreads();
            products(g, left, right, F);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const long long i = i0 + y * ROWS + r;
                const T of_row = i < L ? lse[b * L + i] : T(INFINITY), dot = i < L ? dots[b * L + i] : T(0);
#pragma unroll
                for (int c = 0; c < SCORES; ++c) {
                    const long long j = column + x + ACROSS * c;
                    const T p = exp(score(s[r][c], scale, MASK, b, i, j, L, S, causal) - of_row);
                    const T d = DROPOUT.of(weights[y * ROWS + r][x + ACROSS * c]);
                    sums[r][c] += p * (g[r][c] * d - dot);
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < SCORES; ++c)
            weights[y * ROWS + r][x + ACROSS * c] = sums[r][c];
    __syncthreads();
    const int high = row_step ? 1 : TILE;  // rows that share a number
    for (int at = threadIdx.x; at < TILE / high * TILE; at += BLOCK) {
        const int r = at / TILE, c = at % TILE;
        T sum = T(0);
        for (int i = 0; i < high; ++i)
            sum += weights[r + i][c];
        if (row + r < rows && column + c < S)
            gm[(member * rows + row + r) * S + column + c] = sum;
    }
}
