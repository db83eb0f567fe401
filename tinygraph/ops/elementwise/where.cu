// where: a choice between two operands; the condition and both are broadcast together.
//
// instances: where_forward<T>, where_backward<T, true>,
//            where_backward<T, false> for T in float, double
// instances: where_forward<signed char>, where_forward<short>, where_forward<int>,
//            where_forward<long long>
// operations of where_forward: 0
// operations of where_backward: outputs * terms
//
// Integers and bools come as signed integers of their width: a choice keeps every bit.
//
// forward    A thread owns elements of y, grid and block: the grid-stride loop of prelude.cuh.
// backward   One launch for each gradient; `lanes` threads share an element of it.
//            Grid (ceil(outputs * lanes / 256), chunks), block (256).
//
// Memory: neighbouring threads touch neighbouring elements of y and gy, and of an operand along the
// axes that it has.  Forward goes by packs (packs.cuh) where all operands have all elements, or all
// but b, which is a single number; else the branch that is not taken is not read.
// Operations: none but the sums: bound by memory.

#include "broadcast.cuh"

// condition bool in, a, b T in, of shapes that broadcast to that of y (n) T out.
// numpy: y = np.where(condition, a, b)
template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
where_forward(const bool* __restrict__ condition, const T* __restrict__ a,
              const T* __restrict__ b, T* __restrict__ y, long long n, AXES_PARAMETERS,
              int condition_axes, int a_axes, int b_axes)
{
    if (side_by_side(number_of_axes, condition_axes, a_axes, b_axes)) {
        const auto choose = [](T left, T right, bool first, T& out) { out = first ? left : right; };
        by_packs(n, choose, reads(a), reads(b), reads(condition), writes(y));
        return;
    }
    if (side_by_side(number_of_axes, condition_axes, a_axes)) {
        const T right = b[0];
        const auto choose = [=](T left, bool first, T& out) { out = first ? left : right; };
        by_packs(n, choose, reads(a), reads(condition), writes(y));
        return;
    }
    const int own[] = {condition_axes, a_axes, b_axes};
    each_element(n, AXES, own, [=](long long i, const long long(&at)[3]) {
        y[i] = condition[at[0]] ? a[at[1]] : b[at[2]];
    });
}

// gy T in, condition bool in, which broadcasts to gy; sums (chunks, outputs) T out.
// WHICH is true for the gradient of a, false for that of b.
// numpy: terms = np.where(condition == WHICH, gy, 0)
//        sums[c] = terms[those of chunk c].sum(axis=the axes that are not in kept_axes)
template <typename T, bool WHICH>
__global__ void __launch_bounds__(THREADS, 4)
where_backward(const T* __restrict__ gy, const bool* __restrict__ condition, T* __restrict__ sums,
               SUMS_PARAMETERS, AXES_PARAMETERS, int kept_axes, int condition_axes)
{
    const int own[] = {ALL_AXES, condition_axes};
    sum_terms(sums, SUMS, AXES, kept_axes, own, [=](const long long(&at)[2]) -> T {
        return condition[at[1]] == WHICH ? gy[at[0]] : T(0);
    });
}
