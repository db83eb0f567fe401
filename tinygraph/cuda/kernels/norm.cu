// Norms over axes, forward and backward.
//
// instances: norm_forward<T, Euclidean>, norm_forward<T, General> for T in float, double
// instances: norm_backward<T, Euclidean>, norm_backward<T, General> for T in float, double
// operations of norm_forward<T, Euclidean>: 2 * x + x_sums + y
// operations of norm_forward<T, General>: 2 * x + x_sums + 2 * y
// operations of norm_backward<T, Euclidean>: x + gy
// operations of norm_backward<T, General>: 2 * x + 2 * gy
//
// Which thread owns what, grid, block, the order of sums and how memory is read: axes.cuh.
// Bound by memory for the Euclidean norm, by a power for each element for others.
// Deterministic: no two groups of threads write one element.

#include "axes.cuh"

// What is summed up, what is made of the sum, and the gradient of an element: `share` of all in a set,
// `gradient` of each.
struct Euclidean {
    FORMULA T term(T x, T) { return x * x; }
    FORMULA T root(T sum, T) { return sqrt(sum); }
    FORMULA T share(T gy, T y, T) { return gy / y; }
    FORMULA T gradient(T share, T x, T) { return share * x; }
};

struct General {
    FORMULA T term(T x, T p) { return pow(abs(x), p); }
    FORMULA T root(T sum, T p) { return pow(sum, T(1) / p); }
    FORMULA T share(T gy, T y, T p_less_1) { return gy / pow(y, p_less_1); }

    FORMULA T gradient(T share, T x, T p_less_1)
    {
        return share * copysign(pow(abs(x), p_less_1), x);
    }
};

// x (kept0, reduced0, kept1, reduced1, kept2) T in the first stage, else null; x_sums T in: from the
// second stage on, the sums of parts that form such an array, else null.
// Where there are several slices, sums (outputs, slices) T out; else null, and y (outputs) T out.
// numpy: y = (np.abs(x) ** p).sum((1, 3)) ** (1 / p)
template <typename T, typename Norm>
__global__ void __launch_bounds__(THREADS, 2)
norm_forward(const T* __restrict__ x, const T* __restrict__ x_sums, T* __restrict__ sums,
             T* __restrict__ y, T p, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T sum = sum_of_part(sets, part, scratch, [=](long long i) {
            return x ? Norm::term(x[i], p) : x_sums[i];
        });
        if (sets.lane() != 0)
            return;
        if (y)
            y[part.index] = Norm::root(sum, p);
        else
            sums[part.index] = sum;
    });
}

// gy, y (outputs) T in, x (kept0, reduced0, kept1, reduced1, kept2) T in, gx of its shape T out.
// numpy: gx = gy / y ** p_less_1 * np.sign(x) * np.abs(x) ** p_less_1, 0 where x is 0
template <typename T, typename Norm>
__global__ void __launch_bounds__(THREADS, 2)
norm_backward(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ y,
              T* __restrict__ gx, T p_less_1, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T share = Norm::share(gy[part.output], y[part.output], p_less_1);
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const T g = Norm::gradient(share, x[at.offset], p_less_1);
            gx[at.offset] = x[at.offset] == T(0) ? T(0) : g;
        }
    });
}
