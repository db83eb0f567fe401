// expand, backward: the sum over the axes along which an array was repeated.  Forward is a view.
//
// operations of expand_backward: outputs * terms
//
// It is also the way back from broadcasting wherever the gradient of an operand is the upstream
// gradient itself, as in x + y, and it adds up the chunks of larger sums.
//
// `lanes` threads share an element of gx.  Grid (ceil(outputs * lanes / 256), chunks), block (256).
// Memory: every element of g is read once; neighbouring threads read neighbouring elements, along
// the innermost axis.
// Deterministic: the order of each sum depends on the shapes alone (broadcast.cuh).

#include "broadcast.cuh"

// g (of the broadcast shape) T in, sums (chunks, outputs) T out.
// numpy: sums[c] = g[terms of chunk c].sum(axis=the axes that are not in kept_axes)
template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
expand_backward(const T* __restrict__ g, T* __restrict__ sums, SUMS_PARAMETERS, AXES_PARAMETERS,
                int kept_axes)
{
    const int own[] = {ALL_AXES};
    sum_terms(sums, SUMS, AXES, kept_axes, own,
              [=](const long long(&at)[1]) -> T { return g[at[0]]; });
}
