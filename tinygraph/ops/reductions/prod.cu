// Product over axes, forward and backward.
//
// instances: prod_forward<T> for T in float, double, long long
// operations of prod_forward: (2 * kept0 * reduced0 * kept1 * reduced1 * kept2
//             + y)
// operations of prod_backward: x + gy  # less where elements are 0
//
// Which thread owns what, grid, block, the order of factors and how memory is read: axes.cuh.
// Bound by memory: forward reads each element once, backward reads and writes each once.
// Deterministic: no two groups of threads write one element.
//
// A part of a set leaves the product of its elements that are not 0, and the number of the others:
// an array of such factors is (2, parts) T.

#include "axes.cuh"
#include "element_types.cuh"

struct Product {
    FORMULA T combine(T a, T b) { return T(modular(a) * modular(b)); }
};

// x (kept0, reduced0, kept1, reduced1, kept2) T in.  From the second stage on, x_factors (2, parts)
// T in, of parts that form such an array; null in the first.
// factors (2, outputs * slices) T out or null; y (outputs) T out or null: where there are several
// slices it must be null.
// numpy: y = x.prod((1, 3))
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
prod_forward(const T* __restrict__ x, const T* __restrict__ x_factors, T* __restrict__ factors,
             T* __restrict__ y, SETS_PARAMETERS)
{
    __shared__ T scratch[WARPS];
    const Sets sets = SETS;
    const long long elements = sets.outputs() * reduced0 * reduced1;
    sets.each_part([&](const Part& part) {
        T product = 1, zeros = 0;
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            T factor, more;
            if (x_factors) {
                factor = x_factors[at.offset];
                more = x_factors[elements + at.offset];
            } else {
                const T value = x[at.offset];
                factor = value == T(0) ? T(1) : value;
                more = value == T(0) ? T(1) : T(0);
            }
            product = Product::combine(product, factor);
            zeros += more;
        }
        product = sets.reduce<Product>(product, scratch);
        zeros = sets.reduce<Sum>(zeros, scratch);
        if (sets.lane() != 0)
            return;
        if (factors) {
            factors[part.index] = product;
            factors[sets.parts() + part.index] = zeros;
        }
        if (y)  // infinity times 0 is NaN
            y[part.output] = Product::combine(product, zeros == T(0) ? T(1) : T(0));
    });
}

// gy (outputs) T in, x (kept0, reduced0, kept1, reduced1, kept2) T in, factors (2, outputs) T in: of
// the whole sets; gx of the shape of x T out.
// numpy: gx[k, r] = gy[k] * np.delete(x[k], r).prod()
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
prod_backward(const T* __restrict__ gy, const T* __restrict__ x, const T* __restrict__ factors,
              T* __restrict__ gx, SETS_PARAMETERS)
{
    const Sets sets = SETS;
    sets.each_part([&](const Part& part) {
        const T g = gy[part.output] * factors[part.output];
        const T zeros = factors[sets.outputs() + part.output];
        for (Walk at = sets.walk(part); at.inside(); at.next()) {
            const T value = x[at.offset];
            if (value == T(0))
                gx[at.offset] = zeros == T(1) ? g : T(0);
            else
                gx[at.offset] = zeros == T(0) ? g / value : T(0);
        }
    });
}
