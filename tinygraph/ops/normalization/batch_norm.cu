// Batch normalization, forward and backward.
//
// instances (COLUMNS=1): batch_moments<T>, batch_statistics<T>, running_statistics<T>,
//            normalize<T>, gradient_sums<T>, gradient_means<T>,
//            normalize_backward<T> for T in float, double
// instances (COLUMNS=32): batch_moments<T>, normalize<T>, gradient_sums<T>,
//            normalize_backward<T> for T in float, double
// operations of batch_moments: 5 * x
// operations of batch_statistics: channels * (7 * slices + (19 if running_mean else 11))
// operations of running_statistics: 9 * channels
// operations of normalize: (4 if bias else 3) * x + weight
// operations of gradient_sums: (5 if x else 1) * gy
// operations of gradient_means: channels * (2 * slices + (1 if gw else 0) + (4 if means else 0))
// operations of normalize_backward: (6 if means else 1) * gy + weight
//
// main loop of batch_moments<float> (COLUMNS=1): at most 48 instructions, at least 16 bytes a load
// main loop of normalize<float> (COLUMNS=1): at most 56 instructions, at least 16 bytes a load
// main loop of gradient_sums<float> (COLUMNS=1): at most 54 instructions, at least 16 bytes a load
// main loop of normalize_backward<float> (COLUMNS=1): at most 62 instructions,
//     at least 16 bytes a load
//
//     x (N, C, D): N images, C channels, D positions (pixels; 1 for x (N, C))
//     a channel has M = N * D members; member i is position i % D of image i / D
//
// A block owns COLUMNS channels and one of the slices of their members:
//
//     COLUMNS = 1     D > 1: neighbouring threads own neighbouring positions of one channel
//     COLUMNS = 32    D = 1: neighbouring threads own neighbouring channels of one image
//
// so that in both neighbouring threads touch neighbouring elements.  Grid (ceil(C / COLUMNS),
// slices), block (256); a thread takes every (256 / COLUMNS * slices)-th member of its channel.
// Where D is a multiple of as many as 16 bytes hold, a member is a pack of so many (packs.cuh), read
// and written at once if the arrays begin at a multiple of 16 bytes.
// batch_statistics and gradient_means put the slices together, a warp for each channel: grid
// (ceil(C / 8)), block (256).
//
// Bound by memory.  Training: forward reads x twice and writes y; backward reads x and gy twice and
// writes gx.  x - mean is never stored.
// Deterministic: the slices depend on the shape alone, and every sum has a fixed order.
// Statistics take one pass over x, see normalization.cuh; they are kept as (3, C).

#include "normalization.cuh"
#include "packs.cuh"

#ifndef COLUMNS
#define COLUMNS 1
#endif

// The members of a channel that a thread owns, one after the other, without a division each time.
template <typename T>
struct Members {
    static constexpr int PACK = COLUMNS == 1 ? 16 / sizeof(T) : 1;

    const long long images, channels;
    const bool packs;           // a member is a pack
    const long long positions;  // in members
    long long channel, image, position;  // where it stands
    long long step_images, step_positions;

    __device__ __forceinline__ Members(long long images, long long channels, long long positions)
        : images(images), channels(channels), packs(positions % PACK == 0),
          positions(packs ? positions / PACK : positions)
    {
        constexpr int together = THREADS / COLUMNS;  // members of one channel in a block
        const long long stride = static_cast<long long>(gridDim.y) * together;
        const long long first =
            static_cast<long long>(blockIdx.y) * together + threadIdx.x / COLUMNS;
        channel = static_cast<long long>(blockIdx.x) * COLUMNS + threadIdx.x % COLUMNS;
        image = channel < channels ? first / this->positions : images;  // beyond: no member
        position = first % this->positions;
        step_images = stride / this->positions;
        step_positions = stride % this->positions;
    }

    __device__ __forceinline__ bool inside() const { return image < images; }

    // Of its first element.
    __device__ __forceinline__ long long offset() const
    {
        return ((image * channels + channel) * positions + position) * (packs ? PACK : 1);
    }

    __device__ __forceinline__ void next()
    {
        image += step_images;
        position += step_positions;
        if (position >= positions) {
            position -= positions;
            ++image;
        }
    }

    // Call the function for each of their elements, with what it reads by value and what it writes
    // by reference.
    template <typename Function, typename... Arrays>
    __device__ __forceinline__ void each(Function function, const Arrays&... arrays)
    {
        if (packs) {
            const bool whole = (begins_a_pack<PACK>(arrays.of) & ...);
            for (; inside(); next()) {
                if (whole)
                    one_pack<true, PACK>(offset(), function, arrays...);
                else
                    one_pack<false, PACK>(offset(), function, arrays...);
            }
        } else {
            for (; inside(); next())
                one_pack<false, 1>(offset(), function, arrays...);
        }
    }
};

// ---- statistics -----------------------------------------------------------------------------

// x (N, C, D) T in; partials (3, C, slices) T out: count, mean - x[0, c, 0] and squares of a slice.
// numpy: of the slice's members, len(m), m.mean() - x[0, c, 0], ((m - m.mean()) ** 2).sum()
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
batch_moments(const T* __restrict__ x, T* __restrict__ partials, long long images,
              long long channels, long long positions)
{
    __shared__ T scratch[COLUMNS * WARPS];
    Members<T> at(images, channels, positions);
    const bool inside = at.channel < channels;
    const T origin = inside ? x[at.channel * positions] : T(0);
    Accumulator<T> own;
    if (at.inside())
        own.shift = x[at.offset()];
    at.each([&](T value) { own.add(value); }, reads(x));
    const Moments<T> slice = combine_moments(
        own.moments(origin), [&](T value) { return sum_columns<COLUMNS>(value, scratch); });
    if (threadIdx.x < COLUMNS && inside) {
        const long long slices = gridDim.y, i = at.channel * slices + blockIdx.y;
        partials[i] = slice.count;
        partials[channels * slices + i] = slice.mean;
        partials[2 * channels * slices + i] = slice.squares;
    }
}

// partials (3, C, slices) T in, x (N, C, D) T in; statistics (3, C) T out: mean, what its rounding
// left over, 1 / sqrt(variance + eps); running_mean, running_var (C) T in and out, or null.  count
// is M, kept is 1 - momentum.  Grid (ceil(C / 8)).
// numpy: mean = x.mean(axes); inverse = 1 / np.sqrt(x.var(axes) + eps)
//        running_mean = kept * running_mean + momentum * mean
//        running_var = kept * running_var + momentum * x.var(axes, ddof=1)
template <typename T>
__global__ void __launch_bounds__(THREADS)
batch_statistics(const T* __restrict__ partials, const T* __restrict__ x,
                 T* __restrict__ statistics, T* __restrict__ running_mean,
                 T* __restrict__ running_var, long long channels, long long positions, int slices,
                 T count, T eps, T kept, T momentum)
{
    const long long c = group_number<32>();
    if (c >= channels)
        return;  // the whole warp together
    const T* counts = partials + c * slices;
    const T* means = counts + channels * slices;
    const T* squares = means + channels * slices;
    T mean = 0, square = 0;
    for (int i = threadIdx.x % 32; i < slices; i += 32)
        mean += counts[i] * means[i];
    mean = reduce_warp<Sum>(mean) / count;
    for (int i = threadIdx.x % 32; i < slices; i += 32) {
        const T d = means[i] - mean;
        square += squares[i] + counts[i] * d * d;
    }
    square = reduce_warp<Sum>(square);
    if (threadIdx.x % 32 != 0)
        return;
    const Normalizer<T> n = normalizer_of(x[c * positions], mean, square / count, eps);
    store_normalizer(statistics, c, channels, n);
    if (running_mean) {
        running_mean[c] = kept * running_mean[c] + momentum * n.mean;
        running_var[c] = kept * running_var[c] + momentum * (square / (count - 1));
    }
}

// running_mean, running_var (C) T in; statistics (3, C) T out, as above.  Grid (ceil(C / 256)).
// numpy: mean = running_mean; inverse = 1 / np.sqrt(running_var + eps)
template <typename T>
__global__ void __launch_bounds__(THREADS)
running_statistics(const T* __restrict__ running_mean, const T* __restrict__ running_var,
                   T* __restrict__ statistics, long long channels, T eps)
{
    for (long long c = first_element(); c < channels; c += element_stride())
        store_normalizer(statistics, c, channels,
                         normalizer_of(running_mean[c], T(0), running_var[c], eps));
}

// x (N, C, D) T in, statistics (3, C) T in, weight, bias (C) T in or null, y (N, C, D) T out.
// numpy: y = (x - mean) * (inverse * weight) + bias
template <typename T>
__global__ void __launch_bounds__(THREADS)
normalize(const T* __restrict__ x, const T* __restrict__ statistics, const T* __restrict__ weight,
          const T* __restrict__ bias, T* __restrict__ y, long long images, long long channels,
          long long positions)
{
    Members<T> at(images, channels, positions);
    if (at.channel >= channels)
        return;
    const Normalizer<T> n = load_normalizer(statistics, at.channel, channels);
    const T scale = weight ? n.inverse * weight[at.channel] : n.inverse;
    const T shift = bias ? bias[at.channel] : T(0);
    const auto apply = [=](T value, T& result) {
        const T scaled = n.centre(value) * scale;
        result = bias ? scaled + shift : scaled;
    };
    at.each(apply, reads(x), writes(y));
}

// ---- backward -------------------------------------------------------------------------------

// gy (N, C, D) T in, x (N, C, D) T in or null: then the second sum is 0, statistics (3, C) T in;
// partials (2, C, slices) T out.
// numpy: of the slice's members, gy.sum() and (gy * (x - mean)).sum()
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
gradient_sums(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ statistics,
              T* __restrict__ partials, long long images, long long channels, long long positions)
{
    __shared__ T scratch[COLUMNS * WARPS];
    Members<T> at(images, channels, positions);
    const bool inside = at.channel < channels;
    Normalizer<T> n = {};
    if (inside)
        n = load_normalizer(statistics, at.channel, channels);
    T sum = 0, product = 0;
    const auto add = [&](T g, T value) {
        sum += g;
        product += g * n.centre(value);
    };
    if (x)
        at.each(add, reads(gy), reads(x));
    else
        at.each([&](T g) { sum += g; }, reads(gy));
    sum = sum_columns<COLUMNS>(sum, scratch);
    product = sum_columns<COLUMNS>(product, scratch);
    if (threadIdx.x < COLUMNS && inside) {
        const long long slices = gridDim.y, i = at.channel * slices + blockIdx.y;
        partials[i] = sum;
        partials[channels * slices + i] = product;
    }
}

// partials (2, C, slices) T in, statistics (3, C) T in; gw, gb (C) T out or null; means (2, C) T
// out or null: for normalize_backward.  count is M.  Grid (ceil(C / 8)).
// numpy: gb = gy.sum(axes); product = (gy * (x - mean)).sum(axes); gw = product * inverse
//        means = gb / M, product / M * inverse ** 2
template <typename T>
__global__ void __launch_bounds__(THREADS)
gradient_means(const T* __restrict__ partials, const T* __restrict__ statistics,
               T* __restrict__ gw, T* __restrict__ gb, T* __restrict__ means, long long channels,
               int slices, T count)
{
    const long long c = group_number<32>();
    if (c >= channels)
        return;  // the whole warp together
    const T sum = sum_of_slices(partials, c, slices);
    const T product = sum_of_slices(partials, channels + c, slices);
    if (threadIdx.x % 32 != 0)
        return;
    const T inverse = statistics[2 * channels + c];
    if (gw)
        gw[c] = product * inverse;
    if (gb)
        gb[c] = sum;
    if (means) {
        means[c] = sum / count;
        means[channels + c] = product / count * inverse * inverse;
    }
}

// gy (N, C, D) T in; x (N, C, D) and means (2, C) T in, or both null: the statistics were
// constants; statistics (3, C) T in, weight (C) T in or null, gx (N, C, D) T out.
// numpy: gx = (gy - means[0] - (x - mean) * means[1]) * inverse * weight
template <typename T>
__global__ void __launch_bounds__(THREADS)
normalize_backward(const T* __restrict__ gy, const T* __restrict__ x,
                   const T* __restrict__ statistics, const T* __restrict__ means,
                   const T* __restrict__ weight, T* __restrict__ gx, long long images,
                   long long channels, long long positions)
{
    Members<T> at(images, channels, positions);
    if (at.channel >= channels)
        return;
    const Normalizer<T> n = load_normalizer(statistics, at.channel, channels);
    const T scale = weight ? n.inverse * weight[at.channel] : n.inverse;
    const T mean = means ? means[at.channel] : T(0);
    const T slope = means ? means[channels + at.channel] : T(0);
    const auto apply = [=](T g, T value, T& result) {
        result = (g - n.centre(value) * slope - mean) * scale;
    };
    if (means)
        at.each(apply, reads(gy), reads(x), writes(gx));
    else
        at.each([=](T g, T& result) { result = g * scale; }, reads(gy), writes(gx));
}
