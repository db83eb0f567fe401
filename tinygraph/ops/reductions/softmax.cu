// Softmax and its logarithm over axes, forward and backward.
//
// instances: softmax_forward<T, Softmax>, softmax_forward<T, LogSoftmax>,
//            softmax_backward<T, Softmax>, softmax_backward<T, LogSoftmax>,
//            product_sums<T> for T in float, double
// operations of softmax_forward<T, Softmax>:
//             (3 if exponentials else 7) * x + kept0 * kept1 * kept2
// operations of softmax_forward<T, LogSoftmax>:
//             (2 if exponentials else 6) * x + kept0 * kept1 * kept2
// operations of softmax_backward<T, Softmax>: (2 if totals else 4) * y
// operations of softmax_backward<T, LogSoftmax>: (3 if totals else 4) * y
// operations of product_sums: 2 * y
//
// Which thread owns what, grid, block, the order of sums and how memory is read: axes.cuh.  Here a
// result is written for each element, not for each set; so where a set is longer than one part,
// what all of the set share comes from launches before: the maxima and sums of exponentials from
// those of logsumexp.cu, the sums of backward from product_sums and sum.cu.
// A part holds at most 8192 elements.  All that a group reads more than once comes from cache:
// forward reads x from memory once and writes y once; backward reads gy and y once and writes gx
// once.  Sets in several parts are read twice.
// Forward takes two exp for each element (one for LogSoftmax), backward none (one for LogSoftmax).
// Deterministic: no two groups of threads write one element.

#include "exponentials.cuh"

// With d = x - maximum and s = sum of exp(d) over the set.  `term` is what backward sums up over
// the set, and `total` the sum.
struct Softmax {
    FORMULA T scale(T s) { return T(1) / s; }
    FORMULA T forward(T d, T scale) { return exp(d) * scale; }
    FORMULA T term(T gy, T y) { return gy * y; }
    FORMULA T backward(T gy, T y, T total) { return y * (gy - total); }
};

struct LogSoftmax {
    FORMULA T scale(T s) { return log(s); }
    FORMULA T forward(T d, T scale) { return d - scale; }
    FORMULA T term(T gy, T) { return gy; }
    FORMULA T backward(T gy, T y, T total) { return gy - exp(y) * total; }
};

// x (kept0, reduced0, kept1, reduced1, kept2) T in; exponentials (2, outputs) T in: maxima and sums
// of exp(x - maximum), null where there is one slice; y of the shape of x T out.
// A set with an infinite maximum, +inf or -inf, has no softmax: all NaN, as inf - inf is.
// numpy: d = x - x.max((1, 3), keepdims=True); s = np.exp(d).sum((1, 3), keepdims=True)
//        y = np.exp(d) / s, or d - np.log(s) for LogSoftmax
template <typename T, typename Kind>
__global__ void __launch_bounds__(THREADS, 2)
softmax_forward(const T* __restrict__ x, const T* __restrict__ exponentials, T* __restrict__ y,
                SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T* none = nullptr;
        const Exponentials<T> of =
            exponentials ? read_exponentials(x, exponentials, sets.outputs(), part.output)
                         : exponentials_of_part(sets, part, x, none, scratch);
        const T scale = Kind::scale(of.maximum == of.level() ? of.sum : T(NAN));
        for (Walk at = sets.walk(part); at.inside(); at.next())
            y[at.offset] = Kind::forward(x[at.offset] - of.maximum, scale);
    });
}

// gy, y (kept0, reduced0, kept1, reduced1, kept2) T in; totals (outputs) T in: the sums below, null
// where there is one slice; gx of the shape of y T out.
// numpy: y * (gy - (gy * y).sum((1, 3), keepdims=True)), or
//        gy - np.exp(y) * gy.sum((1, 3), keepdims=True) for LogSoftmax
template <typename T, typename Kind>
__global__ void __launch_bounds__(THREADS, 2)
softmax_backward(const T* __restrict__ gy, const T* __restrict__ y, const T* __restrict__ totals,
                 T* __restrict__ gx, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const auto term = [=](long long i) { return Kind::term(gy[i], y[i]); };
        const T total = totals ? totals[part.output] : sum_of_part(sets, part, scratch, term);
        for (Walk at = sets.walk(part); at.inside(); at.next())
            gx[at.offset] = Kind::backward(gy[at.offset], y[at.offset], total);
    });
}

// gy, y (kept0, reduced0, kept1, reduced1, kept2) T in, sums (outputs, slices) T out.
// numpy: of each slice, (gy * y).sum()
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
product_sums(const T* __restrict__ gy, const T* __restrict__ y, T* __restrict__ sums,
             SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T sum = sum_of_part(sets, part, scratch, [=](long long i) { return gy[i] * y[i]; });
        if (sets.lane() == 0)
            sums[part.index] = sum;
    });
}
