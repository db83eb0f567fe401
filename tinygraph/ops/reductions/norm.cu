// Norms over axes, forward and backward.
//
// instances: norm_forward<T, Euclidean>, norm_forward<T, General> for T in float, double
// instances: norm_backward<T, Euclidean>, norm_backward<T, General> for T in float, double
// operations of norm_forward<T, Euclidean>: 2 * x + y
// operations of norm_forward<T, General>: 2 * x + 2 * y
// operations of norm_backward<T, Euclidean>: 2 * x
// operations of norm_backward<T, General>: 2 * x + 2 * gy
//
// Which thread owns what, grid, block, the order of sums and how memory is read: axes.cuh.
// Bound by memory for the Euclidean norm, by a power for each element for others.
// Deterministic: no two groups of threads write one element.
//
// Where a set has several parts, its norm is that of their norms.
//
// Powers of small and of large numbers leave the range of T before the norm does.  A sum in which
// that may have counted is made again by its group, of abs(x) / unit: with the largest number as the
// unit, or the smallest for negative p, the powers are at most 1, and one of them is.  x is read
// three times there, and wherever all of a part is 0.

#include "axes.cuh"

// What is summed up, what is made of the sum, and the gradient of an element.
struct Euclidean {
    FORMULA T term(T x, T) { return x * x; }
    FORMULA T root(T sum, T) { return sqrt(sum); }
    FORMULA T share(T gy, T, T) { return gy; }
    FORMULA T gradient(T share, T x, T y, T) { return share * (x / y); }
};

// The ratio of x and y leaves the range of T too, to where a power of less than 1 would bring it back.
struct General {
    FORMULA T term(T x, T p) { return pow(abs(x), p); }
    FORMULA T root(T sum, T p) { return pow(sum, T(1) / p); }

    FORMULA T share(T gy, T y, T p_less_1)
    {
        return abs(p_less_1) < T(1) ? gy * pow(y, -p_less_1) : gy;
    }

    FORMULA T gradient(T share, T x, T y, T p_less_1)
    {
        const T ratio = abs(p_less_1) < T(1) ? abs(x) : abs(x) / y;
        return share * copysign(pow(ratio, p_less_1), x);
    }
};

// Whether no power that is missing in a sum, for it was too small for T, is more than a rounding.
template <typename T>
__device__ __forceinline__ bool is_whole(T sum)
{
    const T least = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-960);
    return (sum >= least && sum < T(INFINITY)) || is_nan(sum);
}

// The norm of a part, in every thread of its group.
template <typename Norm, typename T>
__device__ __forceinline__ T norm_of_part(const Sets& sets, const Part& part, const T* x, T p,
                                          T* scratch)
{
    const T sum = sum_of_part(sets, part, scratch, [=](long long i) { return Norm::term(x[i], p); });
    if (is_whole(sum))
        return Norm::root(sum, p);

    const T sign = p < T(0) ? T(-1) : T(1);
    T unit = p < T(0) ? -T(INFINITY) : T(0);
    for (Walk at = sets.walk(part); at.inside(); at.next())
        unit = Max::combine(unit, sign * abs(x[at.offset]));
    unit = abs(sets.reduce<Max>(unit, scratch));
    if (unit == T(0) || unit == T(INFINITY))
        return unit;
    const T ratios = sum_of_part(sets, part, scratch, [=](long long i) {
        return Norm::term(abs(x[i]) / unit, p);
    });
    return unit * Norm::root(ratios, p);
}

// x (kept0, reduced0, kept1, reduced1, kept2) T in, which are norms of parts from the second stage
// on; y (outputs, slices) T out.
// numpy: y = (np.abs(x) ** p).sum((1, 3)) ** (1 / p)
template <typename T, typename Norm>
__global__ void __launch_bounds__(THREADS, 2)
norm_forward(const T* __restrict__ x, T* __restrict__ y, T p, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T norm = norm_of_part<Norm>(sets, part, x, p, scratch);
        if (sets.lane() == 0)
            y[part.index] = norm;
    });
}

// gy, y (outputs) T in, x (kept0, reduced0, kept1, reduced1, kept2) T in, gx of its shape T out.
// numpy: gx = gy * np.sign(x) * (np.abs(x) / y) ** p_less_1, 0 where x is 0
template <typename T, typename Norm>
__global__ void __launch_bounds__(THREADS, 2)
norm_backward(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ y,
              T* __restrict__ gx, T p_less_1, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T length = y[part.output];
        const T share = Norm::share(gy[part.output], length, p_less_1);
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const T g = Norm::gradient(share, x[at.offset], length, p_less_1);
            gx[at.offset] = x[at.offset] == T(0) ? T(0) : g;
        }
    });
}
