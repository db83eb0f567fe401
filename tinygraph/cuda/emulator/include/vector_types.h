// CUDA's built-in vector types: float4, int2, uchar3, ... and make_float4 and friends.
//
// Alignments and sizes: CUDA C++ Programming Guide, "Built-in Vector Types", table of alignment
// requirements.
//
// A GPU loads or stores a whole 2- or 4-vector with one instruction, and the checker counts memory
// transactions and finds misaligned vectors by seeing that one access. A compiler for the CPU,
// left alone, splits the copy of a struct into copies of the members that are used. So the copies
// are written by hand here, each as one access of the full width (32-byte types: two accesses of
// 16 bytes, as on the GPU).
//
// In CUDA these types are aggregates. A type with a hand-written copy cannot be one, so a
// constructor stands in for aggregate initialisation. What differs from CUDA:
//   * `float4 v = {1, 2}`, `float4{...}`, `{}`, arrays and members of braces work the same;
//     an array of vectors needs its inner braces: `float4 a[1] = {{1, 2, 3, 4}}`.
//   * `float4(1, 2, 3, 4)` and `float4 v = 1.0f` compile here and not under CUDA 12 with C++17.
//   * a union with a vector member can be declared, left uninitialised, and its members used, but
//     the union cannot be copied as a whole: copy the vector member.
#pragma once

#include "tg_attributes.h"

// One unit of memory access. may_alias: `*(float4*)pointer_to_float` is everyday CUDA.
typedef unsigned short __attribute__((may_alias)) tg_word2;
typedef unsigned int __attribute__((may_alias)) tg_word4;
typedef unsigned long long __attribute__((may_alias)) tg_word8;
typedef float __attribute__((vector_size(16), may_alias)) tg_word16;

template <unsigned BYTES> struct tg_packet;
template <> struct tg_packet<2> { typedef tg_word2 word; };
template <> struct tg_packet<4> { typedef tg_word4 word; };
template <> struct tg_packet<8> { typedef tg_word8 word; };
template <> struct tg_packet<16> { typedef tg_word16 word; };
template <> struct tg_packet<32> { typedef tg_word16 word; };

// Check builds hide the value between load and store from the optimiser, which then can neither
// narrow the load to the members that are used nor split the store. (volatile would do that too,
// but clang then keeps, and instruments, every local copy.)
#if defined(TINYGRAPH_CHECK) && !defined(TINYGRAPH_FOLLOW)
template <typename Word> TG_INLINE void tg_hide(Word& value) { __asm__("" : "+r"(value)); }
TG_INLINE void tg_hide(tg_word16& value) { __asm__("" : "+" TG_FLOAT_REGISTER(value)); }
#else
template <typename Word> TG_INLINE void tg_hide(Word&) {}
#endif

template <typename Word> TG_INLINE void tg_copy_word(Word* to, const Word* from)
{
    Word value = *from;
    tg_hide(value);
    *to = value;
}

template <unsigned BYTES> TG_INLINE void tg_copy_vector(void* to, const void* from)
{
    typedef typename tg_packet<BYTES>::word word;
    tg_copy_word((word*)to, (const word*)from);
    if (BYTES > sizeof(word)) tg_copy_word((word*)to + 1, (const word*)from + 1);
}

// Copying a vector of either width below.
#define TG_COPIES(Vector)                                                                        \
    TG_INLINE Vector(const Vector& other) { tg_copy_vector<sizeof(Vector)>(this, &other); }      \
    TG_INLINE Vector& operator=(const Vector& other)                                             \
    {                                                                                            \
        tg_copy_vector<sizeof(Vector)>(this, &other);                                            \
        return *this;                                                                            \
    }

// Vectors of one and three elements: plain structs, aligned like their element, accessed one
// element at a time (as on the GPU).
#define TG_VECTOR1(Vector, Element)                                                              \
    struct __attribute__((may_alias)) Vector { Element x; };                                     \
    TG_INLINE Vector make_##Vector(Element x) { return {x}; }

#define TG_VECTOR3(Vector, Element)                                                              \
    struct __attribute__((may_alias)) Vector { Element x, y, z; };                               \
    TG_INLINE Vector make_##Vector(Element x, Element y, Element z) { return {x, y, z}; }

// Vectors of two and four elements: one access for a copy. `= default` leaves a local variable
// uninitialised, as a plain struct would.
#define TG_VECTOR2(Vector, Element, ALIGNMENT)                                                   \
    struct __attribute__((aligned(ALIGNMENT), may_alias)) Vector {                               \
        Element x, y;                                                                            \
        Vector() = default;                                                                      \
        TG_INLINE constexpr Vector(Element x, Element y = 0) : x(x), y(y) {}                     \
        TG_COPIES(Vector)                                                                        \
    };                                                                                           \
    TG_INLINE Vector make_##Vector(Element x, Element y) { return Vector(x, y); }

#define TG_VECTOR4(Vector, Element, ALIGNMENT)                                                   \
    struct __attribute__((aligned(ALIGNMENT), may_alias)) Vector {                               \
        Element x, y, z, w;                                                                      \
        Vector() = default;                                                                      \
        TG_INLINE constexpr Vector(Element x, Element y = 0, Element z = 0, Element w = 0)       \
            : x(x), y(y), z(z), w(w) {}                                                          \
        TG_COPIES(Vector)                                                                        \
    };                                                                                           \
    TG_INLINE Vector make_##Vector(Element x, Element y, Element z, Element w)                   \
    {                                                                                            \
        return Vector(x, y, z, w);                                                               \
    }

// A family: the last two arguments are the alignments of its 2- and 4-vectors.
#define TG_VECTORS(name, Element, ALIGNMENT2, ALIGNMENT4)                                        \
    TG_VECTOR1(name##1, Element)                                                                 \
    TG_VECTOR2(name##2, Element, ALIGNMENT2)                                                     \
    TG_VECTOR3(name##3, Element)                                                                 \
    TG_VECTOR4(name##4, Element, ALIGNMENT4)

TG_VECTORS(char, signed char, 2, 4)
TG_VECTORS(uchar, unsigned char, 2, 4)
TG_VECTORS(short, short, 4, 8)
TG_VECTORS(ushort, unsigned short, 4, 8)
TG_VECTORS(int, int, 8, 16)
TG_VECTORS(uint, unsigned int, 8, 16)
TG_VECTORS(long, long, 16, 16)
TG_VECTORS(ulong, unsigned long, 16, 16)
TG_VECTORS(longlong, long long, 16, 16)
TG_VECTORS(ulonglong, unsigned long long, 16, 16)
TG_VECTORS(float, float, 8, 16)
TG_VECTORS(double, double, 16, 16)

#undef TG_VECTORS
#undef TG_VECTOR1
#undef TG_VECTOR2
#undef TG_VECTOR3
#undef TG_VECTOR4
#undef TG_COPIES

// The size of a grid or block: dimensions that are left out are 1.
struct dim3 {
    unsigned int x, y, z;
    TG_INLINE constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1)
        : x(x), y(y), z(z) {}
    TG_INLINE constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
    TG_INLINE constexpr operator uint3() const { return uint3{x, y, z}; }
};
