// Layer normalization, forward and backward.
//
// instances (ROW_THREADS=32): layer_norm_forward<T>, layer_norm_backward<T>, parameter_sums<T>,
//            parameter_gradients<T> for T in float, double
// instances (ROW_THREADS=256): layer_norm_forward<T>,
//            layer_norm_backward<T> for T in float, double
// operations of layer_norm_forward: (8 + (1 if weight else 0) + (1 if bias else 0)) * x + 10 * rows
// operations of layer_norm_backward: (13 if weight else 11) * x + 4 * rows
// operations of parameter_sums: (6 if x else 1) * gy
// operations of parameter_gradients: partials
//
//     x (R, D): R samples as rows of D features, side by side in memory
//
// layer_norm_forward, layer_norm_backward: a group of ROW_THREADS threads owns a row, one warp for
// short rows and the block for long ones, and a thread of it every ROW_THREADS-th feature.  Grid
// (ceil(R / (256 / ROW_THREADS))), block (256).
//
// parameter_sums: a block owns 32 features, one for each lane, and a slice of the rows, which are
// dealt out to its 8 warps.  Grid (ceil(D / 32), slices), block (256).  parameter_gradients puts
// the slices together, a warp for each feature: grid (ceil(D / 8)), block (256).
//
// Memory: in all of them neighbouring threads touch neighbouring elements.  Bound by memory: a row
// is read twice, the second time from the cache.  x - mean is never stored.
// Deterministic: the slices depend on the shape alone, and every sum has a fixed order.
// Statistics take one pass over a row, see normalization.cuh; they are kept as (3, R).

#include "normalization.cuh"

#ifndef ROW_THREADS
#define ROW_THREADS 32
#endif

// x (R, D) T in, weight, bias (D) T in or null, y (R, D) T out; statistics (3, R) T out or null:
// mean, what its rounding left over, 1 / sqrt(variance + eps).
// numpy: y = (x - x.mean(1)) / np.sqrt(x.var(1) + eps) * weight + bias, of columns
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
layer_norm_forward(const T* __restrict__ x, const T* __restrict__ weight,
                   const T* __restrict__ bias, T* __restrict__ y, T* __restrict__ statistics,
                   long long rows, long long features, T eps)
{
    __shared__ T scratch[WARPS];
    const long long row = group_number<ROW_THREADS>();
    if (row >= rows)
        return;  // the whole group together, so nobody waits for it
    const long long first = row * features;
    const int lane = threadIdx.x % ROW_THREADS;
    Accumulator<T> own;
    if (lane < features)
        own.shift = x[first + lane];
    for (long long d = lane; d < features; d += ROW_THREADS)
        own.add(x[first + d]);
    const T origin = x[first];
    const Moments<T> all = combine_moments(own.moments(origin), [&](T value) {
        return reduce_group<Sum, ROW_THREADS>(value, scratch);
    });
    const Normalizer<T> n = normalizer_of(origin, all.mean, all.squares / all.count, eps);
    for (long long d = lane; d < features; d += ROW_THREADS) {
        T value = n.centre(x[first + d]) * n.inverse;
        if (weight)
            value *= weight[d];
        if (bias)
            value += bias[d];
        y[first + d] = value;
    }
    if (statistics && lane == 0)
        store_normalizer(statistics, row, rows, n);
}

// gy, x (R, D) T in, statistics (3, R) T in, weight (D) T in or null, gx (R, D) T out.
// numpy: h = gy * weight; d = x - mean
//        gx = (h - h.mean(1) - d * (h * d).mean(1) * inverse ** 2) * inverse, of columns
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
layer_norm_backward(const T* __restrict__ gy, const T* __restrict__ x,
                    const T* __restrict__ statistics, const T* __restrict__ weight,
                    T* __restrict__ gx, long long rows, long long features)
{
    __shared__ T scratch[WARPS];
    const long long row = group_number<ROW_THREADS>();
    if (row >= rows)
        return;
    const long long first = row * features;
    const int lane = threadIdx.x % ROW_THREADS;
    const Normalizer<T> n = load_normalizer(statistics, row, rows);
    LongSum<T, 2> sums;
    for (long long d = lane; d < features; d += ROW_THREADS) {
        const T h = weight ? gy[first + d] * weight[d] : gy[first + d];
        sums.add(h, h * n.centre(x[first + d]));
    }
    const T count = static_cast<T>(features);
    const T mean = reduce_group<Sum, ROW_THREADS>(sums.value(0), scratch) / count;
    const T product = reduce_group<Sum, ROW_THREADS>(sums.value(1), scratch) / count;
    const T slope = product * n.inverse * n.inverse;
    for (long long d = lane; d < features; d += ROW_THREADS) {
        const T h = weight ? gy[first + d] * weight[d] : gy[first + d];
        gx[first + d] = (h - n.centre(x[first + d]) * slope - mean) * n.inverse;
    }
}

// gy (R, D) T in, x (R, D) T in or null: then the second sum is 0, statistics (3, R) T in; partials
// (2, D, slices) T out.
// numpy: of the slice's rows, gy.sum(0) and (gy * (x - mean) * inverse).sum(0)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
parameter_sums(const T* __restrict__ gy, const T* __restrict__ x,
               const T* __restrict__ statistics, T* __restrict__ partials, long long rows,
               long long features)
{
    __shared__ T scratch[32 * WARPS];
    const long long d = static_cast<long long>(blockIdx.x) * 32 + threadIdx.x % 32;
    const bool inside = d < features;
    const long long first = static_cast<long long>(blockIdx.y) * WARPS + threadIdx.x / 32;
    const long long stride = static_cast<long long>(gridDim.y) * WARPS;
    LongSum<T, 2> sums;
    for (long long row = inside ? first : rows; row < rows; row += stride) {
        const T g = gy[row * features + d];
        T of_weight = 0;
        if (x) {
            const Normalizer<T> n = load_normalizer(statistics, row, rows);
            of_weight = g * (n.centre(x[row * features + d]) * n.inverse);
        }
        sums.add(g, of_weight);
    }
    const T sum = sum_columns<32>(sums.value(0), scratch);
    const T product = sum_columns<32>(sums.value(1), scratch);
    if (threadIdx.x < 32 && inside) {
        const long long slices = gridDim.y, i = d * slices + blockIdx.y;
        partials[i] = sum;
        partials[features * slices + i] = product;
    }
}

// partials (2, D, slices) T in; gw, gb (D) T out or null.
// numpy: gb = partials[0].sum(1); gw = partials[1].sum(1)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
parameter_gradients(const T* __restrict__ partials, T* __restrict__ gw, T* __restrict__ gb,
                    long long features, int slices)
{
    const long long d = group_number<32>();
    if (d >= features)
        return;  // the whole warp together
    const T sum = sum_of_slices(partials, d, slices);
    const T product = sum_of_slices(partials, features + d, slices);
    if (threadIdx.x % 32 != 0)
        return;
    if (gw)
        gw[d] = product;
    if (gb)
        gb[d] = sum;
}
