// Reductions over any axes: which elements meet in one output, and which threads walk over them.
//
// The host merges neighbouring axes of one kind (ops/common/axes.py), so that any array is seen as
//
//     (kept0, reduced0, kept1, reduced1, kept2)
//
// and output k, one combination of the kept axes in row-major order, is made from the `count` =
// reduced0 * reduced1 elements of its set.  A single reduced axis is reduced1, between kept0 and
// kept2; the statistics of a channel of images are kept1, between samples and pixels.
//
// `slices` groups of threads share a set, and walk over it side by side.  A group is
//
//       1  one thread       short sets, or kept2 > 1: neighbouring threads own neighbouring outputs
//      32  one warp         longer sets that lie side by side in memory: no barrier
//     256  the block        the longest of these
//
// so that in all three neighbouring threads read neighbouring elements.  A part, what one group
// owns, holds at most 32 elements for each thread.  Where a set has more than one part, their
// results (outputs, slices) are reduced by a second launch, over axis 1, and so on.  A sum is thus
// a tree whose nodes add up 32 terms in each thread: its rounding grows like that of a pairwise sum.
//
// Grid (min(ceil(outputs * slices * group / 256), 1024)), block (256).  Which elements meet in
// which order depends on the shape alone: deterministic.

#pragma once

#include "reduce.cuh"

// The elements of a part that one thread owns, as r = 0 ... count - 1 in row-major order over the
// reduced axes, and as offsets in the array:
//
//     for (Walk at = sets.walk(part); at.inside(); at.next())
//         sum += x[at.offset];
//
// Nothing is divided on the way: a step of the walk is split into rows and columns once.
struct Walk {
    long long r, offset;
    long long count, step, step_offset;  // of the set; from one element of the thread to the next
    long long column, columns, step_columns, wrap;  // r = row * columns + column

    __device__ __forceinline__ bool inside() const { return r < count; }

    __device__ __forceinline__ void next()
    {
        r += step;
        offset += step_offset;
        column += step_columns;
        if (column >= columns) {
            column -= columns;
            offset += wrap;
        }
    }
};

// What one group of threads owns: the slice of an output's set.
struct Part {
    long long output, slice;
    long long index;  // in an array (outputs, slices)
};

struct Sets {
    long long kept0, reduced0, kept1, reduced1, kept2, slices;
    int group;

    __device__ __forceinline__ long long outputs() const { return kept0 * kept1 * kept2; }

    __device__ __forceinline__ long long parts() const { return outputs() * slices; }
    __device__ __forceinline__ int lane() const { return threadIdx.x % group; }

    // Calls function(part) for each part that a group owns; all its threads take the same turns.
    // Neighbouring turns are neighbouring outputs, which lie side by side where kept2 > 1.
    template <typename Function>
    __device__ __forceinline__ void each_part(Function function) const
    {
        for (long long turn = first_element() / group; turn < parts();
             turn += element_stride() / group) {
            Part part;
            part.slice = slices == 1 ? 0 : turn / outputs();
            part.output = turn - part.slice * outputs();
            part.index = part.output * slices + part.slice;
            function(part);
        }
    }

    // Where in the array the set of an output begins.
    __device__ __forceinline__ long long first(long long output) const
    {
        const long long row = output / kept2;  // kept0 and kept1 as one
        const long long column = output - row * kept2;
        const long long outer = row / kept1;
        const long long middle = row - outer * kept1;
        return ((outer * reduced0 * kept1 + middle) * reduced1) * kept2 + column;
    }

    // The offset of element r of a set from its first.
    __device__ __forceinline__ long long offset(long long r) const
    {
        const long long row = r / reduced1;
        return row * row_stride() + (r - row * reduced1) * kept2;
    }

    __device__ __forceinline__ long long row_stride() const { return kept1 * reduced1 * kept2; }

    // From element r of a set on, every `step`-th; the set begins at `first`.
    __device__ __forceinline__ Walk walk(long long first, long long r, long long step) const
    {
        const long long row = r / reduced1, step_rows = step / reduced1;
        Walk at;
        at.r = r;
        at.count = reduced0 * reduced1;
        at.step = step;
        at.columns = reduced1;
        at.column = r - row * reduced1;
        at.step_columns = step - step_rows * reduced1;
        at.offset = first + row * row_stride() + at.column * kept2;
        at.step_offset = step_rows * row_stride() + at.step_columns * kept2;
        at.wrap = row_stride() - reduced1 * kept2;
        return at;
    }

    __device__ __forceinline__ Walk walk(const Part& part) const
    {
        return walk(first(part.output), part.slice * group + lane(), slices * group);
    }

    // The value of the whole group, in each of its threads; all of them must call it together.
    // `scratch` holds WARPS elements in shared memory.
    template <typename Operation, typename T>
    __device__ __forceinline__ T reduce(T value, T* scratch) const
    {
        if (group == 1)
            return value;
        if (group == 32)
            return reduce_group<Operation, 32>(value, scratch);
        return reduce_group<Operation, THREADS>(value, scratch);
    }
};

// A kernel takes the sizes as scalars, and makes `const Sets sets = SETS` of them.
#define SETS_PARAMETERS                                                                          \
    long long kept0, long long reduced0, long long kept1, long long reduced1, long long kept2,   \
        long long slices, int group
#define SETS {kept0, reduced0, kept1, reduced1, kept2, slices, group}

// The sum of term(offset) over the elements of a part, in every thread of its group.
template <typename T, typename Term>
__device__ __forceinline__ T sum_of_part(const Sets& sets, const Part& part, T* scratch, Term term)
{
    T sum = 0;
    for (Walk at = sets.walk(part); at.inside(); at.next())
        sum += term(at.offset);
    return sets.reduce<Sum>(sum, scratch);
}
