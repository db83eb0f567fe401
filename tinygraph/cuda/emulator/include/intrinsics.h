// CUDA's integer, conversion and memory intrinsics, assertions and clocks.
// Sources: CUDA Math API Reference Manual; PTX ISA for the corner cases (cited where used).
#pragma once

#include "tg_attributes.h"

// ---- Bits. -------------------------------------------------------------------------------------

TG_INLINE int __popc(unsigned int x) { return __builtin_popcount(x); }
TG_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
// Leading zeros: 32 or 64 for x == 0, where the compiler's builtin is undefined.
TG_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned int)x) : 32; }
TG_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
// The place of the lowest set bit, counted from 1; 0 for x == 0.
TG_INLINE int __ffs(int x) { return __builtin_ffs(x); }
TG_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }

// Bits in reverse order: neighbours, pairs, nibbles change places, then bytes.
TG_INLINE unsigned int __brev(unsigned int x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
TG_INLINE unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned int)x) << 32 | __brev((unsigned int)(x >> 32));
}

// Four of the eight bytes of (y, x); nibble i of the selector names byte i of the result.
TG_INLINE unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector)
{
    unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned int result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned int which = selector >> (4 * i) & 7;
        result |= (unsigned int)(bytes >> (8 * which) & 0xff) << (8 * i);
    }
    return result;
}

// The pair (high, low) shifted by shift % 32; the forms with c clamp the shift to 32 instead.
TG_INLINE unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift)
{
    unsigned long long pair = (unsigned long long)high << 32 | low;
    return shift >= 32 ? low : (unsigned int)(pair << shift >> 32);
}
TG_INLINE unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift)
{
    unsigned long long pair = (unsigned long long)high << 32 | low;
    return shift >= 32 ? high : (unsigned int)(pair >> shift);
}
TG_INLINE unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift)
{
    return __funnelshift_lc(low, high, shift & 31);
}
TG_INLINE unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift)
{
    return __funnelshift_rc(low, high, shift & 31);
}

// ---- Integer arithmetic. -----------------------------------------------------------------------

// The high half of a product.
TG_INLINE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
TG_INLINE unsigned int __umulhi(unsigned int x, unsigned int y)
{
    return (unsigned int)((unsigned long long)x * y >> 32);
}
TG_INLINE long long __mul64hi(long long x, long long y)
{
    return (long long)((__int128)x * y >> 64);
}
TG_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}

// The low half of the product of the low 24 bits (signed: bit 23 is the sign).
TG_INLINE unsigned int __umul24(unsigned int x, unsigned int y)
{
    return (x & 0xffffffu) * (y & 0xffffffu);
}
TG_INLINE int __mul24(int x, int y)
{
    int a = (int)((unsigned int)x << 8) >> 8;
    int b = (int)((unsigned int)y << 8) >> 8;
    return (int)((unsigned int)a * (unsigned int)b);
}

// |x - y| + sum, and averages that do not overflow (r: rounded up).
TG_INLINE unsigned int __usad(unsigned int x, unsigned int y, unsigned int sum)
{
    return (x > y ? x - y : y - x) + sum;
}
TG_INLINE unsigned int __sad(int x, int y, unsigned int sum)
{
    return (x > y ? (unsigned int)x - (unsigned int)y : (unsigned int)y - (unsigned int)x) + sum;
}
TG_INLINE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
TG_INLINE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
TG_INLINE unsigned int __uhadd(unsigned int x, unsigned int y)
{
    return (unsigned int)(((unsigned long long)x + y) >> 1);
}
TG_INLINE unsigned int __urhadd(unsigned int x, unsigned int y)
{
    return (unsigned int)(((unsigned long long)x + y + 1) >> 1);
}

// ---- The same bits, read as another type. ------------------------------------------------------

template <typename To, typename From> TG_INLINE To tg_bits(From value)
{
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To result;
    __builtin_memcpy(&result, &value, sizeof(To));
    return result;
}

TG_INLINE int __float_as_int(float x) { return tg_bits<int>(x); }
TG_INLINE float __int_as_float(int x) { return tg_bits<float>(x); }
TG_INLINE unsigned int __float_as_uint(float x) { return tg_bits<unsigned int>(x); }
TG_INLINE float __uint_as_float(unsigned int x) { return tg_bits<float>(x); }
TG_INLINE long long __double_as_longlong(double x) { return tg_bits<long long>(x); }
TG_INLINE double __longlong_as_double(long long x) { return tg_bits<double>(x); }
TG_INLINE int __double2hiint(double x) { return (int)(tg_bits<long long>(x) >> 32); }
TG_INLINE int __double2loint(double x) { return (int)tg_bits<long long>(x); }
TG_INLINE double __hiloint2double(int high, int low)
{
    return tg_bits<double>((unsigned long long)(unsigned int)high << 32 | (unsigned int)low);
}

// ---- Floating point to integer: rn to nearest even, rz to zero, ru up, rd down. ----------------

// A value out of range is clamped. NaN gives 0 from float to 32 bits, and 1 << (bits - 1)
// otherwise (PTX ISA, "cvt", notes on float-to-integer conversion).
template <typename Integer, typename Real> TG_INLINE Integer tg_to_integer(Real whole)
{
    const int bits = 8 * sizeof(Integer);
    const bool is_signed = (Integer)-1 < (Integer)0;
    const Integer top_bit = (Integer)(1ULL << (bits - 1));
    const Integer lowest = is_signed ? top_bit : (Integer)0;
    const Real limit = (is_signed ? (Real)1 : (Real)2) * (Real)(1ULL << (bits - 1));
    if (whole != whole) return sizeof(Real) == 4 && bits == 32 ? (Integer)0 : top_bit;
    if (whole >= limit) return (Integer)~lowest;
    if (whole < (is_signed ? -limit : (Real)0)) return lowest;
    return (Integer)whole;
}

#define TG_ROUNDED_BY(Real, real, suffix, Integer, integer, mode, round)                         \
    TG_INLINE Integer __##real##2##integer##_##mode(Real x)                                      \
    {                                                                                            \
        return tg_to_integer<Integer>(__builtin_##round##suffix(x));                             \
    }
#define TG_TO_INTEGER(Real, real, suffix, Integer, integer)                                      \
    TG_ROUNDED_BY(Real, real, suffix, Integer, integer, rn, rint)                                \
    TG_ROUNDED_BY(Real, real, suffix, Integer, integer, rz, trunc)                               \
    TG_ROUNDED_BY(Real, real, suffix, Integer, integer, ru, ceil)                                \
    TG_ROUNDED_BY(Real, real, suffix, Integer, integer, rd, floor)

TG_TO_INTEGER(float, float, f, int, int)
TG_TO_INTEGER(float, float, f, unsigned int, uint)
TG_TO_INTEGER(float, float, f, long long, ll)
TG_TO_INTEGER(float, float, f, unsigned long long, ull)
TG_TO_INTEGER(double, double, , int, int)
TG_TO_INTEGER(double, double, , unsigned int, uint)
TG_TO_INTEGER(double, double, , long long, ll)
TG_TO_INTEGER(double, double, , unsigned long long, ull)
#undef TG_ROUNDED_BY
#undef TG_TO_INTEGER

// ---- To floating point. ------------------------------------------------------------------------

// Rounding to nearest can only miss the wanted direction by one float.
TG_INLINE float __double2float_rn(double x) { return (float)x; }
TG_INLINE float __double2float_ru(double x)
{
    float nearest = (float)x;
    return nearest < x ? __builtin_nextafterf(nearest, __builtin_inff()) : nearest;
}
TG_INLINE float __double2float_rd(double x)
{
    float nearest = (float)x;
    return nearest > x ? __builtin_nextafterf(nearest, -__builtin_inff()) : nearest;
}
TG_INLINE float __double2float_rz(double x)
{
    return x < 0 ? __double2float_ru(x) : __double2float_rd(x);
}

// A 32-bit integer is exact in double.
#define TG_TO_FLOAT(Integer, integer)                                                            \
    TG_INLINE float __##integer##2float_rn(Integer x) { return (float)x; }                       \
    TG_INLINE float __##integer##2float_rz(Integer x) { return __double2float_rz((double)x); }   \
    TG_INLINE float __##integer##2float_ru(Integer x) { return __double2float_ru((double)x); }   \
    TG_INLINE float __##integer##2float_rd(Integer x) { return __double2float_rd((double)x); }   \
    TG_INLINE double __##integer##2double_rn(Integer x) { return (double)x; }

TG_TO_FLOAT(int, int)
TG_TO_FLOAT(unsigned int, uint)
#undef TG_TO_FLOAT

TG_INLINE float __ll2float_rn(long long x) { return (float)x; }
TG_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
TG_INLINE double __ll2double_rn(long long x) { return (double)x; }
TG_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

// ---- Loads and stores that say which cache to use: plain ones here. ----------------------------

template <typename T> TG_INLINE T __ldg(const T* address) { return *address; }   // read-only cache
template <typename T> TG_INLINE T __ldca(const T* address) { return *address; }  // all levels
template <typename T> TG_INLINE T __ldcg(const T* address) { return *address; }  // L2
template <typename T> TG_INLINE T __ldcs(const T* address) { return *address; }  // streaming
template <typename T> TG_INLINE T __ldlu(const T* address) { return *address; }  // last use
template <typename T> TG_INLINE T __ldcv(const T* address) { return *address; }  // do not cache
template <typename T> TG_INLINE void __stwb(T* address, T value) { *address = value; }
template <typename T> TG_INLINE void __stcg(T* address, T value) { *address = value; }
template <typename T> TG_INLINE void __stcs(T* address, T value) { *address = value; }
template <typename T> TG_INLINE void __stwt(T* address, T value) { *address = value; }

// ---- Assertions and stopping. ------------------------------------------------------------------

TG_INLINE void __trap(TG_HERE) { tg_trap("__trap()", file, line); }

// Assertions are on unless the kernel's own text says otherwise: `zig c++` defines NDEBUG by itself
// when it optimises.
#undef NDEBUG
#include "assert.h"

// A promise to the optimiser, which costs nothing on a GPU. Check builds hold the kernel to it.
#undef __builtin_assume
#ifdef TINYGRAPH_CHECK
#define __builtin_assume(condition)                                                              \
    ((condition) ? (void)0 : tg_trap("wrong assumption: " #condition, __FILE__, __LINE__))
#else
#define __builtin_assume(condition) ((void)0)
#endif
#define __assume(condition) __builtin_assume(condition)

// ---- Time. Ticks of this machine's counter: they measure nothing about a GPU. ------------------

TG_INLINE long long clock64()
{
#if defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#else
    long long ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}
#ifndef TINYGRAPH_PROGRAM // the C library has it
TG_INLINE int clock() { return (int)clock64(); }
#endif
TG_INLINE void __nanosleep(unsigned int) { tg_nap(); }
