// The logistic function and its integral, which several activations and losses share.

#pragma once

#include "prelude.cuh"

// 1 / (1 + exp(-x)).  For x far below 0 exp(-x) may be infinite, and 1 / inf is the 0 that the
// result rounds to.
template <typename T>
__device__ __forceinline__ T logistic(T x)
{
    return T(1) / (T(1) + exp(-x));
}

// log(1 + exp(-|x|)): what softplus has above max(x, 0).  exp never overflows here.
template <typename T>
__device__ __forceinline__ T softplus_tail(T x)
{
    return log1p(exp(-fabs(x)));  // log(1 + tail) would lose the digits of a small tail
}
