// Sums of exponentials over sets of elements (axes.cuh), as softmax and its relatives need them.
//
// A part of a set is summed up in two numbers:
//
//     m = maximum of its elements          s = sum of exp(x - m)
//
// exp never overflows, and s is at least 1.  Where m is infinite, or there is no element, 0 is
// subtracted in its place: s is then infinite or 0, as the sum of the exponentials is.  A NaN does
// not enter m, but makes s NaN.
//
// The numbers of several parts are those of their union:
//
//     m = maximum of m_i,   s = sum of s_i * exp(m_i - m)
//
// and an element is a part with m = x, s = 1.
//
// Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions",
// IMA Journal of Numerical Analysis 41, 2021.

#pragma once

#include "axes.cuh"

template <typename T>
struct Exponentials {
    T maximum, sum;

    // What is subtracted from the elements.
    __device__ __forceinline__ T level() const { return is_finite(maximum) ? maximum : T(0); }

    static __device__ __forceinline__ bool is_finite(T value) { return value - value == T(0); }
};

// Arrays of these numbers are (2, parts) T: maxima, sums.  Element `offset` of x; or where there
// are `exponentials`, of these.
template <typename T>
__device__ __forceinline__ Exponentials<T> read_exponentials(const T* x, const T* exponentials,
                                                             long long parts, long long offset)
{
    if (!exponentials)
        return {x[offset], T(1)};
    return {exponentials[offset], exponentials[parts + offset]};
}

// The numbers of a part, in every thread of its group.  x is the array; from the second stage on,
// `exponentials` (2, parts) those of the parts before.
template <typename T>
__device__ __forceinline__ Exponentials<T> exponentials_of_part(const Sets& sets, const Part& part,
                                                                const T* x, const T* exponentials,
                                                                T* scratch)
{
    const long long parts = sets.outputs() * sets.reduced0 * sets.reduced1;
    Exponentials<T> of = {-INFINITY, T(0)};
    for (Walk at = sets.walk(part); at.inside(); at.next()) {
        const T maximum = read_exponentials(x, exponentials, parts, at.offset).maximum;
        of.maximum = Max::combine(of.maximum, maximum);
    }
    of.maximum = sets.reduce<Max>(of.maximum, scratch);
    const T level = of.level();
    for (Walk at = sets.walk(part); at.inside(); at.next()) {
        const Exponentials<T> each = read_exponentials(x, exponentials, parts, at.offset);
        of.sum += each.sum * exp(each.maximum - level);
    }
    of.sum = sets.reduce<Sum>(of.sum, scratch);
    return of;
}
