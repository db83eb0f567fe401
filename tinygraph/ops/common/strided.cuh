// Strided axes: where element i of a contiguous array lies in another one, whose neighbours along
// an axis are some step apart.  Transposing, slicing and cutting off a border are all of this kind:
//
//     y[i_2, i_1, i_0] = x[first + i_2 * step_2 + i_1 * step_1 + i_0 * step_0]
//
// Axis 0 is the innermost.  Steps are counted in elements, and may be negative or 0.  The host drops
// axes of size 1 and merges neighbours that are one axis in both arrays (ops/common/strided.py), so that
// most launches have one, two or three of at most MOST_AXES axes.

#pragma once

#include "broadcast.cuh"

struct StridedAxes {
    int number;
    long long size[MOST_AXES], step[MOST_AXES];  // 1 and 0 beyond `number`
};

// A kernel takes the axes as scalars, and makes `const StridedAxes axes = STRIDED_AXES` of them.
#define STRIDED_PARAMETERS                                                                       \
    int number_of_axes, SIX_OF(long long, size), SIX_OF(long long, step)
#define STRIDED_AXES {number_of_axes, {SIX(size)}, {SIX(step)}}

// Calls function(axis, index) for the index along each axis of the element with flat index i.
template <typename Function>
__device__ __forceinline__ void each_axis(const StridedAxes& axes, long long i, Function function)
{
#pragma unroll
    for (int axis = 0; axis < MOST_AXES; ++axis) {
        if (axis >= axes.number)
            break;
        function(axis, cut_off(i, axes.size[axis]));
    }
}

// Where the element with flat index i lies, counted from the first.
__device__ __forceinline__ long long strided_position(const StridedAxes& axes, long long i)
{
    long long at = 0;
    each_axis(axes, i, [&](int axis, long long index) { at += index * axes.step[axis]; });
    return at;
}
