// Broadcasting: operands of different shapes meet element by element, and the way back, the sum
// over the axes along which an operand was repeated.
//
// The host merges neighbouring axes along which every operand either has all elements or is
// repeated (ops/common/broadcast.py).  (N, C, H, W) + (C, 1, 1) is left with three axes,
//
//     axis     2   1   0         0 is the innermost
//     size     N   C   HW
//     x        1   1   1         bit a of a mask: the operand has axis a ...
//     y        0   1   0         ... or is repeated along it, and has one element there
//
// Operands are contiguous, so a mask tells all strides: along an axis that an operand has, its
// elements lie as far apart as all of its axes further in have elements; along the others the
// stride is 0.  Equal shapes have one axis, and the loop below has one turn without a division.
//
// Deterministic: every sum is taken in a fixed order, which depends on the shapes alone.

#pragma once

#include "packs.cuh"

constexpr int MOST_AXES = 6;  // the same number stands in ops/common/broadcast.py
constexpr int ALL_AXES = (1 << MOST_AXES) - 1;

struct Axes {
    int number;
    long long size[MOST_AXES];  // 1 beyond `number`
};

// A kernel takes the axes as scalars, and makes `Axes axes` of them.
#define AXES_PARAMETERS int number_of_axes, SIX_OF(long long, size)
#define AXES {number_of_axes, {SIX(size)}}

// Cuts the index along an axis of `size` elements off `rest`, which the axes further out share.
__device__ __forceinline__ long long cut_off(long long& rest, long long size)
{
    const long long before = rest;
    if (before < size) {  // always so on the outermost axis
        rest = 0;
        return before;
    }
    // A division of 64 bits takes about five times as long as one of 32.
    const bool wide = (before | size) >> 32;
    rest = wide ? before / size
                : static_cast<long long>(static_cast<unsigned>(before)
                                         / static_cast<unsigned>(size));
    return before - rest * size;
}

// Where the operands have the element with the flat index `kept` over the axes in `kept_axes`, and
// `summed` over the others.  `own` holds the mask of each operand, `at` takes the positions.
template <int OPERANDS>
__device__ __forceinline__ void locate(const Axes& axes, long long kept, long long summed,
                                       int kept_axes, const int (&own)[OPERANDS],
                                       long long (&at)[OPERANDS])
{
    long long stride[OPERANDS];
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) {
        at[k] = 0;
        stride[k] = 1;
    }
#pragma unroll
    for (int axis = 0; axis < MOST_AXES; ++axis) {
        if (axis >= axes.number)
            break;
        const long long size = axes.size[axis];
        const long long index =
            kept_axes >> axis & 1 ? cut_off(kept, size) : cut_off(summed, size);
#pragma unroll
        for (int k = 0; k < OPERANDS; ++k) {
            if (own[k] >> axis & 1) {
                at[k] += index * stride[k];
                stride[k] *= size;
            }
        }
    }
}

// Whether operands with these masks have all elements of the output, in one row: then they are done by
// packs.
template <typename... Masks>
__device__ __forceinline__ bool side_by_side(int number_of_axes, Masks... masks)
{
    return number_of_axes == 1 && (masks & ...);
}

// Calls function(i, at) for each of the n elements i that this thread owns; at[k] is the position
// in operand k.
template <int OPERANDS, typename Function>
__device__ __forceinline__ void each_element(long long n, const Axes& axes,
                                             const int (&own)[OPERANDS], Function function)
{
    for (long long i = first_element(); i < n; i += element_stride()) {
        long long at[OPERANDS];
        locate(axes, i, 0, ALL_AXES, own, at);
        function(i, at);
    }
}

// ---- the sum over the axes along which an operand was repeated --------------------------------

// How the terms are dealt out.  `lanes` threads (a power of two, at most THREADS) share an output:
// thread `lane` of them takes every lanes-th term of the chunk blockIdx.y.
//
//     spacing = 1                 they are neighbours: the innermost axis is summed, and neighbours
//                                 read neighbouring terms
//     spacing = THREADS / lanes   neighbours own neighbouring outputs: the innermost axis is kept
struct Sums {
    long long outputs;
    long long terms;      // of each output
    long long per_chunk;  // terms of a block; a second launch adds up the chunks
    int lanes;
    int spacing;
};

#define SUMS_PARAMETERS                                                                          \
    long long outputs, long long terms, long long terms_per_chunk, int lanes, int spacing
#define SUMS {outputs, terms, terms_per_chunk, lanes, spacing}

constexpr int RUN = 32;  // terms that are added one after the other

// sums (gridDim.y, outputs) T out: each is the sum of term(at) over its terms.  at[k] is the
// position in operand k.  Grid (ceil(outputs * lanes / THREADS), chunks), block (THREADS).
template <typename T, int OPERANDS, typename Term>
__device__ __forceinline__ void sum_terms(T* sums, const Sums& of, const Axes& axes, int kept_axes,
                                          const int (&own)[OPERANDS], Term term)
{
    __shared__ T scratch[THREADS];
    const int thread = threadIdx.x;
    const int lane = thread / of.spacing % of.lanes;
    const int place = of.spacing == 1 ? thread / of.lanes : thread % of.spacing;
    const long long output = static_cast<long long>(blockIdx.x) * (THREADS / of.lanes) + place;
    const long long first = blockIdx.y * of.per_chunk;
    const long long last = min(first + of.per_chunk, of.terms);

    // Runs of a few terms, then the sums of these: many terms one after the other would round each
    // time to the size of the whole sum.  -0 is what adds nothing: a sum of one term is that term.
    T sum = -T(0);
    if (output < of.outputs) {
        for (long long r = first + lane; r < last;) {
            T run = -T(0);
            for (int turn = 0; turn < RUN && r < last; ++turn, r += of.lanes) {
                long long at[OPERANDS];
                locate(axes, output, r, kept_axes, own, at);
                run += term(at);
            }
            sum += run;
        }
    }
    if (of.lanes > 1) {  // the same in the whole block, as each barrier needs
        scratch[thread] = sum;
        for (int half = of.lanes / 2; half > 0; half /= 2) {
            __syncthreads();
            if (lane < half)
                scratch[thread] += scratch[thread + half * of.spacing];
        }
        sum = scratch[thread];
    }
    if (lane == 0 && output < of.outputs)
        sums[blockIdx.y * of.outputs + output] = sum;
}
