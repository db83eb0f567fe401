// What every kernel file begins with: the numbers that NVRTC lacks, the size of a block, and which
// elements a thread owns.

#pragma once

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

// Threads in a block of the kernels that own one element after the other, and of the reductions;
// the same number stands in ops/common/launch.py.  256 fills every NVIDIA GPU, and leaves each thread
// enough registers.
constexpr int THREADS = 256;

// __launch_bounds__(THREADS, B) asks for room for B blocks on a multiprocessor: 128 registers a thread
// where B is 2, 64 where it is 4.  Left to itself the compiler aims at up to eight blocks, with 32
// registers, and spills some around divisions, calls and sums of doubles.

// The grid-stride loop: a thread owns elements i, i + stride, ... of n,
//
//     for (long long i = first_element(); i < n; i += element_stride())
//
// Grid (min(ceil(n / 256), 1024)), block (256); any other grid of one dimension works too.
// Memory: the 32 threads of a warp touch 32 neighbours at every turn, whole sectors: coalesced.
// Deterministic: no two threads write one element.
// Elements are counted in 64 bits, for an array may hold more than 2^31 of them.
__device__ __forceinline__ long long first_element()
{
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ long long element_stride()
{
    return static_cast<long long>(gridDim.x) * blockDim.x;
}

// A launch takes numbers and pointers but no arrays of them.  A few of a kind are arguments x_0, x_1,
// ...: EIGHT_OF(long long, n) declares them, `long long n[] = {EIGHT(n)}` makes an array of them.
#define FOUR(x) x##_0, x##_1, x##_2, x##_3
#define SIX(x) FOUR(x), x##_4, x##_5
#define EIGHT(x) SIX(x), x##_6, x##_7
#define FOUR_OF(type, x) type x##_0, type x##_1, type x##_2, type x##_3
#define SIX_OF(type, x) FOUR_OF(type, x), type x##_4, type x##_5
#define EIGHT_OF(type, x) SIX_OF(type, x), type x##_6, type x##_7

// A formula on numbers of a type T, which becomes part of the kernel that calls it: a member of the
// struct that a kernel takes as its template argument, as in
//
//     struct Square {
//         FORMULA T of(T x) { return x * x; }
//     };
#define FORMULA template <typename T> static __device__ __forceinline__

template <typename T>
__device__ __forceinline__ bool is_nan(T value)
{
    return value != value;
}
