// The step of Adam, which AdamW takes too.

#pragma once

#include "optimizer.cuh"

// The running means of all parameters, and the largest means of the square or null.
#define ADAM_STATE STATE(exp_avg), STATE(exp_avg_sq), STATE(largest)

// What the update of one parameter has in common for all elements.  With the bias corrections
// c1 = 1 - beta1^t and c2 = 1 - beta2^t of step t,
//
//     fresh1 = 1 - beta1    fresh2 = 1 - beta2    size = lr * sqrt(c2) / c1    eps = eps * sqrt(c2)
template <typename T>
struct AdamNumbers {
    T beta1, fresh1, beta2, fresh2, size, eps;
};

// What one element of the value loses.  Updates its running means of the gradient and of its
// square; `largest` is the largest mean of the square so far, and 0 where nobody asks for it: then
// it is the mean itself, which is not negative.  A NaN stays in the mean, and so in `largest`.
template <typename T>
__device__ __forceinline__ T adam_step(T g, T& mean, T& mean_square, T& largest,
                                       const AdamNumbers<T>& numbers)
{
    const T m = running_mean(mean, numbers.beta1, numbers.fresh1, g);
    const T v = running_mean(mean_square, numbers.beta2, numbers.fresh2, g * g);
    largest = largest > v ? largest : v;
    return m / (sqrt(largest) + numbers.eps) * numbers.size;
}
