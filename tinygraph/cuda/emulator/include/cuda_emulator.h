/* What a kernel sees when a C++ compiler for the CPU translates it: CUDA's keywords and variables.
 *
 * One CUDA thread is one fiber (a stack and a place in the code).  tg_self() gives the record of
 * the fiber that runs now; threadIdx and its like are fields of that record.  Everything
 * that makes threads wait for each other lies in warp.h.
 */
#pragma once

#define TINYGRAPH_EMULATOR 1

#include "vector_types.h"

typedef __SIZE_TYPE__ size_t;

/* The public part of a fiber's record; `Thread` in runtime/runtime.h is the same. */
struct tg_thread {
    uint3 thread_idx, block_idx;
    dim3 block_dim, grid_dim;
    unsigned linear, lane, warp; /* linear = x + y * X + z * X * Y; lane = linear % 32 */
};

/* The record never changes its place while a thread lives, so one call per function is enough. */
extern "C" const tg_thread *tg_self(void) __attribute__((const));

#ifdef TINYGRAPH_PROGRAM /* there `dim3 blockDim(16, 16);` may stand: the translator tells the two apart */
#define tg_threadIdx (tg_self()->thread_idx)
#define tg_blockIdx (tg_self()->block_idx)
#define tg_blockDim (tg_self()->block_dim)
#define tg_gridDim (tg_self()->grid_dim)
static const int warpSize = 32;
#else
#define threadIdx (tg_self()->thread_idx)
#define blockIdx (tg_self()->block_idx)
#define blockDim (tg_self()->block_dim)
#define gridDim (tg_self()->grid_dim)
#define warpSize 32
#endif

#define __global__
#define __device__
#define __host__
#define __managed__
#define __grid_constant__
#define __constant__
#ifndef TINYGRAPH_PROGRAM /* the C++ library writes __attribute__((__noinline__)): see the translator */
#define __noinline__ __attribute__((noinline))
#endif
#ifdef TINYGRAPH_CHECK /* calls stay calls: the checker tells helpers apart by who called them */
#define __forceinline__ inline
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif

#include "warp.h"

#include "atomics.h"
#include "intrinsics.h"
#include "maths.h"

/* ---- shared memory ---------------------------------------------------------------------------
 *
 * The translator turns
 *     __shared__ float tile[32][33];           into  a slot and a reference to its memory:
 *     static tg_shared_slot slot = {...};  auto &tile = tg_shared<float[32][33]>(slot);
 *     extern __shared__ float rows[];          into  float *rows = (float *)tg_dynamic_memory(&slot);
 * A slot is one per declaration and template instance; its address is its name at run time.
 */
struct tg_shared_slot {
    const char *name;
    unsigned size, align, element;
    const char *file;
    int line;
};

extern "C" {
void *tg_shared_memory(const tg_shared_slot *slot);
void *tg_dynamic_memory(const tg_shared_slot *slot);
int printf(const char *, ...);
void *memcpy(void *, const void *, __SIZE_TYPE__) noexcept(true);
void *memset(void *, int, __SIZE_TYPE__) noexcept(true);
}

template <class T> struct tg_element {
    typedef T type;
};
template <class T, __SIZE_TYPE__ N> struct tg_element<T[N]> {
    typedef typename tg_element<T>::type type;
};

template <class T> struct tg_row;
template <class T, __SIZE_TYPE__ N> struct tg_row<T[N]> {
    typedef T type;
};

/* `extern __shared__` outside of functions: an object that behaves like a pointer. */
template <class T, const tg_shared_slot *SLOT> struct tg_dynamic_array {
    operator T *() const { return (T *)tg_dynamic_memory(SLOT); }
    template <class U> explicit operator U *() const { return (U *)tg_dynamic_memory(SLOT); }
};

/* `__shared__` in a macro escapes the translator: the compiler says so with this name. */
#define __shared__ shared_memory_declared_inside_a_macro_is_not_supported

template <class T> inline T &tg_shared(const tg_shared_slot &slot) {
    return *(T *)tg_shared_memory(&slot);
}

/* ---- the entry of a kernel: arguments arrive packed, each in a slot of 8 bytes ---------------- */

template <__SIZE_TYPE__... I> struct tg_indices {};
template <__SIZE_TYPE__ N, __SIZE_TYPE__... I>
struct tg_count : tg_count<N - 1, N - 1, I...> {};
template <__SIZE_TYPE__... I> struct tg_count<0, I...> {
    typedef tg_indices<I...> type;
};
template <class T> struct tg_plain {
    typedef T type;
};
template <class T> struct tg_plain<const T> {
    typedef T type;
};

template <class... A, __SIZE_TYPE__... I>
TG_UNINSTRUMENTED void tg_unpack(void (*kernel)(A...), const char *packed, tg_indices<I...>) {
    kernel(*(const typename tg_plain<A>::type *)(packed + 8 * I)...);
}

template <class... A> TG_UNINSTRUMENTED void tg_call(void (*kernel)(A...), const char *packed) {
    static_assert(((sizeof(A) <= 8) && ...), "a parameter of more than 8 bytes");
    tg_unpack(kernel, packed, typename tg_count<sizeof...(A)>::type());
}
