// Element by element, 16 bytes at a time.
//
//     by_packs(n, [=](T x, T& y) { y = x * x; }, reads(x), writes(y));
//
// calls the function once for each of n elements, with what it reads by value and what it writes by
// reference.  A thread owns packs first, first + stride, ... of N neighbouring elements, N as many of the
// first array as 16 bytes hold; what no whole pack is left for is owned one by one:
//
//     float     0 1 2 3 | 4 5 6 7 | ... | n - 3, n - 2, n - 1
//     thread      0         1                0      1      2
//
// Memory: one load of 16 bytes takes the place of four of 4, which leaves more of them on the way at a
// time, and a warp takes 512 bytes in a row: coalesced.  Where an array does not begin at a multiple of
// a pack's size, as a view may, packs are read and written element by element.
// Deterministic: no two threads write one element, and who owns what depends on n alone.

#pragma once

#include "prelude.cuh"

template <int N, typename T>
struct alignas(N * sizeof(T)) Pack {
    T at[N];
};

// What is read and written by one instruction.
template <int BYTES> struct Word;
template <> struct Word<16> { using Type = uint4; };
template <> struct Word<8> { using Type = uint2; };
template <> struct Word<4> { using Type = unsigned int; };
template <> struct Word<2> { using Type = unsigned short; };
template <> struct Word<1> { using Type = unsigned char; };

template <typename Pack>
__device__ __forceinline__ void copy_pack(void* to, const void* from)
{
    using Whole = typename Word<sizeof(Pack)>::Type;
    *static_cast<Whole*>(to) = *static_cast<const Whole*>(from);
}

// What a function does with an array.  Of one that is null, which those named IfAny may be, it sees
// zeros, and what it writes is forgotten.
template <typename T> struct Reads {
    const T* of;
};

template <typename T> struct Writes {
    T* of;
};

template <typename T> struct Updates {
    T* of;
};

template <typename T> struct UpdatesIfAny {
    T* of;
};

template <typename T> struct WritesIfAny {
    T* of;
};

template <typename T> __device__ __forceinline__ Reads<T> reads(const T* x) { return {x}; }
template <typename T> __device__ __forceinline__ Writes<T> writes(T* x) { return {x}; }
template <typename T> __device__ __forceinline__ Updates<T> updates(T* x) { return {x}; }

template <typename T> __device__ __forceinline__ UpdatesIfAny<T> updates_if_any(T* x)
{
    return {x};
}

template <typename T> __device__ __forceinline__ WritesIfAny<T> writes_if_any(T* x)
{
    return {x};
}

template <int N, typename T>
__device__ __forceinline__ bool begins_a_pack(const T* x)
{
    return reinterpret_cast<unsigned long long>(x) % (N * sizeof(T)) == 0;
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ Pack<N, T> load_pack(const T* from)
{
    Pack<N, T> pack;
    if constexpr (WHOLE) {
        copy_pack<Pack<N, T>>(&pack, from);
    } else {
#pragma unroll
        for (int k = 0; k < N; ++k)
            pack.at[k] = from[k];
    }
    return pack;
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ void store_pack(T* to, const Pack<N, T>& pack)
{
    if constexpr (WHOLE) {
        copy_pack<Pack<N, T>>(to, &pack);
    } else {
#pragma unroll
        for (int k = 0; k < N; ++k)
            to[k] = pack.at[k];
    }
}

// The elements of an array from i on, before the function and after it.
template <bool WHOLE, int N, typename T>
__device__ __forceinline__ Pack<N, T> before(const Reads<T>& array, long long i)
{
    return load_pack<WHOLE, N>(array.of + i);
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ Pack<N, T> before(const Writes<T>&, long long)
{
    return {};
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ Pack<N, T> before(const Updates<T>& array, long long i)
{
    return load_pack<WHOLE, N>(array.of + i);
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ Pack<N, T> before(const UpdatesIfAny<T>& array, long long i)
{
    if (array.of)
        return load_pack<WHOLE, N>(array.of + i);
    return {};
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ Pack<N, T> before(const WritesIfAny<T>&, long long)
{
    return {};
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ void after(const Reads<T>&, long long, const Pack<N, T>&)
{
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ void after(const Writes<T>& array, long long i, const Pack<N, T>& pack)
{
    store_pack<WHOLE>(array.of + i, pack);
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ void after(const Updates<T>& array, long long i, const Pack<N, T>& pack)
{
    store_pack<WHOLE>(array.of + i, pack);
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ void after(const UpdatesIfAny<T>& array, long long i,
                                      const Pack<N, T>& pack)
{
    if (array.of)
        store_pack<WHOLE>(array.of + i, pack);
}

template <bool WHOLE, int N, typename T>
__device__ __forceinline__ void after(const WritesIfAny<T>& array, long long i,
                                      const Pack<N, T>& pack)
{
    if (array.of)
        store_pack<WHOLE>(array.of + i, pack);
}

// The N elements from i on.
template <bool WHOLE, int N, typename Function, typename... Arrays>
__device__ __forceinline__ void one_pack(long long i, Function& function, const Arrays&... arrays)
{
    [&](auto... packs) {
#pragma unroll
        for (int k = 0; k < N; ++k)
            function(packs.at[k]...);
        (after<WHOLE>(arrays, i, packs), ...);
    }(before<WHOLE, N>(arrays, i)...);
}

// What a thread owns of n elements: packs first, first + stride, ...  No array has larger elements
// than the first one.
template <typename Function, typename First, typename... Others>
__device__ __forceinline__ void by_packs_of(long long n, long long first, long long stride,
                                            Function function, const First& array,
                                            const Others&... others)
{
    constexpr int N = 16 / sizeof(*array.of);
    static_assert(((sizeof(*others.of) <= sizeof(*array.of)) && ...), "16 bytes hold no pack");
    bool whole = begins_a_pack<N>(array.of);
    ((whole &= begins_a_pack<N>(others.of)), ...);
    const long long packs = n / N;
    long long pack = first;
    if (whole) {
        for (; pack + stride < packs; pack += 2 * stride) {  // loads of both before stores of either
            one_pack<true, N>(pack * N, function, array, others...);
            one_pack<true, N>((pack + stride) * N, function, array, others...);
        }
        if (pack < packs)
            one_pack<true, N>(pack * N, function, array, others...);
    } else {
        for (; pack < packs; pack += stride)
            one_pack<false, N>(pack * N, function, array, others...);
    }
    for (long long i = packs * N + first; i < n; i += stride)
        one_pack<false, 1>(i, function, array, others...);
}

// The same over the whole grid, as in the grid-stride loop of prelude.cuh.
template <typename Function, typename... Arrays>
__device__ __forceinline__ void by_packs(long long n, Function function, const Arrays&... arrays)
{
    by_packs_of(n, first_element(), element_stride(), function, arrays...);
}
