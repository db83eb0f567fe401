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
// so that its elements fall to threads as if it were alone, whatever stands beside it.

#pragma once

#include "prelude.cuh"

constexpr int PARTS = 8;  // the same number stands in optim/parts.py

// In a kernel of T: what all of these kernels take.
#define VALUES                                                                                   \
    T *__restrict__ value_0, T *__restrict__ value_1, T *__restrict__ value_2,                   \
        T *__restrict__ value_3, T *__restrict__ value_4, T *__restrict__ value_5,               \
        T *__restrict__ value_6, T *__restrict__ value_7
#define GRADIENTS                                                                                \
    const T *__restrict__ grad_0, const T *__restrict__ grad_1, const T *__restrict__ grad_2,    \
        const T *__restrict__ grad_3, const T *__restrict__ grad_4, const T *__restrict__ grad_5,\
        const T *__restrict__ grad_6, const T *__restrict__ grad_7
#define SIZES                                                                                    \
    long long n_0, long long n_1, long long n_2, long long n_3, long long n_4, long long n_5,    \
        long long n_6, long long n_7, long long most_blocks

// The eight of a kind: EIGHT(grad) is grad_0, ..., grad_7.
#define EIGHT(name) name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7

// What a thread owns: elements first, first + stride, ... below n of one parameter.
struct Share {
    int part;
    long long n, first, stride;
};

// The share of this thread; none, n = 0, in a block that is too many.
__device__ __forceinline__ Share own_share(long long n_0, long long n_1, long long n_2,
                                           long long n_3, long long n_4, long long n_5,
                                           long long n_6, long long n_7, long long most_blocks)
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
__device__ __forceinline__ T* of_part(int part, T* x_0, T* x_1, T* x_2, T* x_3, T* x_4, T* x_5,
                                      T* x_6, T* x_7)
{
    T* const x[PARTS] = {EIGHT(x)};
    T* chosen = x_0;
#pragma unroll
    for (int p = 1; p < PARTS; ++p)
        chosen = part == p ? x[p] : chosen;
    return chosen;
}
