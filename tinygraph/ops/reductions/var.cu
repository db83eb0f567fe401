// Variance and standard deviation over axes, forward and backward.
//
// instances: var_forward<T, Var>, var_forward<T, Std> for T in float, double
// instances: var_backward<T, Var>, var_backward<T, Std> for T in float, double
// operations of var_forward<T, Std>: (10 * kept0 * reduced0 * kept1 * reduced1 * kept2
//             + 4 * kept0 * kept1 * kept2 * slices + 2 * y)
// operations of var_forward: (10 * kept0 * reduced0 * kept1 * reduced1 * kept2
//             + 4 * kept0 * kept1 * kept2 * slices + y)
// operations of var_backward<T, Std>: 3 * x + 3 * gy
// operations of var_backward: 3 * x + gy
//
// Which thread owns what, grid, block, the order of sums and how memory is read: axes.cuh.
// A group of threads reads its part of a set twice, for the mean and for the distances from it; the
// second time from cache, as a part holds at most 8192 elements.
// Deterministic: no two groups of threads write one element.
//
// A part is summed up in its moments: how many elements it has, their mean, and the sum of the
// squares of their distances from it.  The moments of several parts are those of their union
//
//     n = sum of n_i,   m = sum of n_i * m_i / n,   q = sum of q_i + n_i * (m_i - m)^2
//
// which nothing cancels in, far from zero either; an element is a part with n = 1 and q = 0.  The
// mean is kept as high + low: high is what T holds of it, low the mean of the distances from high.
//
// Source: Chan, Golub, LeVeque, "Algorithms for computing the sample variance: analysis and
// recommendations", The American Statistician 37, 1983.

#include "axes.cuh"

// What is made of a variance, and the upstream gradient of the variance.
struct Var {
    FORMULA T of(T variance) { return variance; }
    FORMULA T gradient(T gy, T) { return gy; }
};

struct Std {
    FORMULA T of(T variance) { return sqrt(variance); }
    FORMULA T gradient(T gy, T y)
    {
        const bool flat = y == T(0);
        return (flat ? T(0) : gy) / (T(2) * (flat ? T(1) : y));
    }
};

template <typename T>
struct Moments {
    T n, high, low, squares;
};

// Arrays of moments are (4, parts) T: n, high, low, squares.
template <typename T>
__device__ __forceinline__ void write_moments(T* moments, long long parts, long long index,
                                              const Moments<T>& of)
{
    moments[index] = of.n;
    moments[parts + index] = of.high;
    moments[2 * parts + index] = of.low;
    moments[3 * parts + index] = of.squares;
}

// Element `offset` of x; or where there are moments, of parts of the sets.
template <typename T>
__device__ __forceinline__ Moments<T> read_moments(const T* x, const T* moments, long long parts,
                                                   long long offset)
{
    if (!moments)
        return {T(1), x[offset], T(0), T(0)};
    return {moments[offset], moments[parts + offset], moments[2 * parts + offset],
            moments[3 * parts + offset]};
}

template <typename T>
__device__ __forceinline__ Moments<T> moments_of_part(const Sets& sets, const Part& part,
                                                      const T* x, const T* moments, T* scratch)
{
    const long long parts = sets.outputs() * sets.reduced0 * sets.reduced1;
    T n = 0, sum = 0;
    for (Walk at = sets.walk(part); at.inside(); at.next()) {
        const Moments<T> each = read_moments(x, moments, parts, at.offset);
        n += each.n;
        sum += each.n * each.high;
    }
    n = sets.reduce<Sum>(n, scratch);
    sum = sets.reduce<Sum>(sum, scratch);
    if (n == T(0))
        return {T(0), T(0), T(0), T(0)};

    const T high = sum / n;
    T distances = 0, squares = 0;
    for (Walk at = sets.walk(part); at.inside(); at.next()) {
        const Moments<T> each = read_moments(x, moments, parts, at.offset);
        const T distance = (each.high - high) + each.low;
        distances += each.n * distance;
        squares += each.squares + each.n * distance * distance;
    }
    distances = sets.reduce<Sum>(distances, scratch);
    squares = sets.reduce<Sum>(squares, scratch);
    const T low = distances / n;
    squares -= distances * low;  // now around high + low; of equal elements, zero but for rounding
    return {n, high, low, squares < T(0) ? T(0) : squares};
}

// x (kept0, reduced0, kept1, reduced1, kept2) T in.  From the second stage on, x_moments (4, parts)
// T in, of parts that form such an array; null in the first.
// Where there are several slices, moments (4, outputs * slices) T out; else null, and y (outputs) T
// out, centers (2, outputs) T out or null: high and low of the means, for backward.
// numpy: y = ((x - x.mean((1, 3), keepdims=True))**2).sum((1, 3)) / divisor, or its root
template <typename T, typename Result>
__global__ void __launch_bounds__(THREADS, 2)
var_forward(const T* __restrict__ x, const T* __restrict__ x_moments, T* __restrict__ moments,
            T* __restrict__ y, T* __restrict__ centers, T divisor, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const Moments<T> of = moments_of_part(sets, part, x, x_moments, scratch);
        if (sets.lane() != 0)
            return;
        if (moments)
            write_moments(moments, sets.parts(), part.index, of);
        if (y)
            y[part.output] = Result::of(of.squares / divisor);
        if (centers) {
            centers[part.output] = of.high;
            centers[sets.outputs() + part.output] = of.low;
        }
    });
}

// gy, y (outputs) T in; x as in var_forward, centers (2, outputs) T in; gx (kept0, reduced0, kept1,
// reduced1, kept2) T out.
// numpy: gx = gv.reshape(kept0, 1, kept1, 1, kept2) / half_divisor * (x - mean), where gv is gy or
// gy / (2 * y)
template <typename T, typename Result>
__global__ void __launch_bounds__(THREADS, 2)
var_backward(const T* __restrict__ gy, const T* __restrict__ y, const T* __restrict__ x,
             const T* __restrict__ centers, T* __restrict__ gx, T half_divisor, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T g = Result::gradient(gy[part.output], y[part.output]);
        const T share = g / half_divisor;
        const T high = centers[part.output], low = centers[sets.outputs() + part.output];
        for (Walk at = sets.walk(part); at.inside(); at.next())
            gx[at.offset] = share * ((x[at.offset] - high) - low);
    });
}
