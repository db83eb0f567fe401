// What the updates of several optimisers share.

#pragma once

#include "parameters.cuh"

// The gradient with that of an L2 penalty.  Without one, a value of inf or NaN stays out of it.
template <typename T>
__device__ __forceinline__ T decayed(T grad, T value, T weight_decay)
{
    return weight_decay == T(0) ? grad : grad + weight_decay * value;
}

// A running mean takes one more number in: `kept` of it stays, and the number has the weight
// `fresh`, which the host gives as 1 - kept, rounded once.
template <typename T>
__device__ __forceinline__ T running_mean(T& mean, T kept, T fresh, T number)
{
    mean = kept * mean + fresh * number;
    return mean;
}
