// Many parameters in one launch: which of them a block works on.
//
// Most parameters of a network are small, and a launch for each would cost more than its numbers.
// A launch takes PARTS of them, 8 or 32, as so many pointers of each kind,
//
//     value_0, value_1, ...    grad_0, grad_1, ...    sizes n_0, n_1, ...
//
// and fewer with null pointers and sizes of 0.  Blocks are dealt out in the parameters' order:
//
//     parameter p has the next  min(ceil(n_p / 4096), most_blocks)  blocks
//
// so that its elements fall to threads as if it were alone, whatever stands beside it: a thread owns
// packs first, first + stride, ... of it (packs.cuh), four or more, as finding its parameter takes
// about as many instructions as four packs.
// Grid (the sum of min(ceil(n_p / 4096), most_blocks)), block (256).
// Memory: packs of 16 bytes: fully coalesced.
// Deterministic: no two threads touch one element.

#pragma once

#include "packs.cuh"

#ifndef PARTS
#define PARTS 8  // optim/parts.py chooses
#endif
constexpr int OF_A_BLOCK = 4096;  // elements; the same number stands in optim/parts.py

// ALL(x) names all x_0, x_1, ...; PARTS_OF(T*, x) declares them as parameters.
#if PARTS == 8
#define PARTS_OF(type, x) EIGHT_OF(type, x)
#define ALL(x) EIGHT(x)
#else
#define PARTS_OF(type, x) \
    EIGHT_OF(type, x), type x##_8, type x##_9, type x##_10, type x##_11, type x##_12, \
    type x##_13, type x##_14, type x##_15, type x##_16, type x##_17, type x##_18, \
    type x##_19, type x##_20, type x##_21, type x##_22, type x##_23, type x##_24, \
    type x##_25, type x##_26, type x##_27, type x##_28, type x##_29, type x##_30, \
    type x##_31
#define ALL(x) \
    EIGHT(x), x##_8, x##_9, x##_10, x##_11, x##_12, x##_13, x##_14, x##_15, x##_16, x##_17, \
    x##_18, x##_19, x##_20, x##_21, x##_22, x##_23, x##_24, x##_25, x##_26, x##_27, x##_28, \
    x##_29, x##_30, x##_31
#endif

// What these kernels of T take: values, which change, gradients, and how many elements each has.  An
// optimiser has numbers of its own for each element, which change as well: STATE(exp_avg).
#define STATE(x) PARTS_OF(T* __restrict__, x)
#define VALUES STATE(value)
#define GRADIENTS PARTS_OF(const T* __restrict__, grad)
#define SIZES PARTS_OF(long long, n), long long most_blocks

// What a thread owns: packs first, first + stride, ... of n elements of one parameter.
struct Share {
    int part;
    long long n, first, stride;
};

// Takes note of the share of this thread in parameter `part`, if its block, counted from the first
// one of that parameter, is one of its own; and counts it from the next one's.
__device__ __forceinline__ void look_at(Share& own, long long& block, int part, long long n,
                                        long long most_blocks)
{
    const long long blocks = min((n + OF_A_BLOCK - 1) / OF_A_BLOCK, most_blocks);
    if (block >= 0 && block < blocks)
        own = {part, n, block * THREADS + threadIdx.x, blocks * THREADS};
    block -= blocks;
}

// The share of this thread; none, n = 0, in a block that is too many.
template <typename... Sizes>
__device__ __forceinline__ Share own_share(long long most_blocks, Sizes... n)
{
    Share own = {0, 0, 0, 0};
    long long block = blockIdx.x;
    int part = 0;
    (look_at(own, block, part++, n, most_blocks), ...);
    return own;
}

// That of several pointers which belongs to a part.  An array of them, with an index that is not
// known in advance, would lie in memory, and what is read through its pointers be of unknown kind.
template <typename T, typename... Pointers>
__device__ __forceinline__ T* of_part(int part, T* first, Pointers... others)
{
    T* chosen = first;
    int p = 0;
    ((chosen = part == ++p ? others : chosen), ...);
    return chosen;
}

// Calls the function once for each element that this thread owns: see by_packs.
template <typename Function, typename... Arrays>
__device__ __forceinline__ void by_packs(const Share& own, Function function,
                                         const Arrays&... arrays)
{
    by_packs_of(own.n, own.first, own.stride, function, arrays...);
}
