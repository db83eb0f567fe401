// Eight parameters in one launch: which of them a block works on.
//
// Most parameters of a network are small, and a launch for each would cost more than its numbers.
// A launch takes eight, as eight pointers of each kind,
//
//     value_0 ... value_7,  grad_0 ... grad_7,  sizes n_0 ... n_7
//
// and fewer with null pointers and sizes of 0.  Blocks are dealt out in the parameters' order:
//
//     parameter p has the next  min(ceil(n_p / 256), most_blocks)  blocks
//
// so that its elements fall to threads as if it were alone, whatever stands beside it: a thread owns
// elements first, first + stride, ... of it (a grid-stride loop).
// Grid (the sum of min(ceil(n_p / 256), most_blocks)), block (256).
// Memory: neighbouring threads touch neighbouring elements: fully coalesced.
// Deterministic: no two threads touch one element.

#pragma once

#include "prelude.cuh"

constexpr int PARTS = 8;  // the same number stands in optim/parts.py

// What these kernels of T take: values, which change, gradients, and how many elements each has.  An
// optimiser has numbers of its own for each element, which change as well: STATE(exp_avg).
#define STATE(x) EIGHT_OF(T* __restrict__, x)
#define VALUES STATE(value)
#define GRADIENTS EIGHT_OF(const T* __restrict__, grad)
#define SIZES EIGHT_OF(long long, n), long long most_blocks

// What a thread owns: elements first, first + stride, ... below n of one parameter.
struct Share {
    int part;
    long long n, first, stride;
};

// The share of this thread; none, n = 0, in a block that is too many.
__device__ __forceinline__ Share own_share(SIZES)
{
    const long long n[PARTS] = {EIGHT(n)};
    Share own = {0, 0, 0, 0};
    long long block = blockIdx.x;  // counted from the first one of parameter p; below 0 behind it
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const long long blocks = min((n[p] + THREADS - 1) / THREADS, most_blocks);
        if (block >= 0 && block < blocks)
            own = {p, n[p], block * THREADS + threadIdx.x, blocks * THREADS};
        block -= blocks;
    }
    return own;
}

// That of eight pointers which belongs to a part.  An index that is not known in advance would move
// an array of them to memory.
template <typename T>
__device__ __forceinline__ T* of_part(int part, EIGHT_OF(T*, x))
{
    T* const x[PARTS] = {EIGHT(x)};
    T* chosen = x_0;
#pragma unroll
    for (int p = 1; p < PARTS; ++p)
        chosen = part == p ? x[p] : chosen;
    return chosen;
}
