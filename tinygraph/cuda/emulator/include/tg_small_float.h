// Numbers of 16 bits: what __half (cuda_fp16.h) and __nv_bfloat16 (cuda_bf16.h) have in common.
//
// A number of M bits behind the point is computed in double and rounded once, to nearest even. Sums,
// products and quotients of such numbers are exact in double, or so close that a second rounding
// changes nothing (Figueroa, "When is double rounding innocuous?", 1995: 53 >= 2 (M + 1) + 2); the
// sum of a fused multiply-add is rounded to odd first (Boldo, Melquiond, 2008), for the same.
#pragma once

#include "cuda_emulator.h"

// ---- Rounding. ----------------------------------------------------------------------------------

enum tg_rounding { TG_NEAREST, TG_TO_ZERO, TG_UP, TG_DOWN };

TG_INLINE double tg_whole(double x, tg_rounding mode, bool negative)
{
    if (mode == TG_NEAREST) return __builtin_rint(x);
    const bool away = mode == (negative ? TG_DOWN : TG_UP);
    return away ? __builtin_ceil(x) : __builtin_trunc(x);
}

// The bits of the number next to x. In units of the last place a number is a whole number, and its
// bits are that number and the exponent, added: a carry goes where it belongs.
template <int M, int BIAS> TG_INLINE unsigned short tg_narrow(double x, tg_rounding mode = TG_NEAREST)
{
    const unsigned long long bits = tg_bits<unsigned long long>(x);
    const bool negative = bits >> 63;
    const unsigned sign = negative ? 0x8000 : 0, infinite = (2 * BIAS + 1) << M;
    if (x != x) return 0x7fff;
    const double magnitude = __builtin_fabs(x);
    if (magnitude > 1.7e308) return (unsigned short)(sign | infinite);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent < 1 - BIAS) exponent = 1 - BIAS;
    if (exponent > BIAS + 1) exponent = BIAS + 1;
    const double unit = tg_bits<double>((unsigned long long)(M - exponent + 1023) << 52);
    const double whole = tg_whole(magnitude * unit, mode, negative);
    unsigned field = whole >= 4194304.0 ? infinite
                                        : ((unsigned)(exponent + BIAS - 1) << M) + (unsigned)whole;
    if (field >= infinite) // too large: the largest number where the direction is towards zero
        field = mode == TG_NEAREST || mode == (negative ? TG_DOWN : TG_UP) ? infinite : infinite - 1;
    return (unsigned short)(sign | field);
}

// x * y + z, rounded to odd: what a second rounding makes of it is what one rounding would.
TG_INLINE double tg_fused(double x, double y, double z)
{
    const double product = x * y, sum = tg_rounded(product + z);
    if (!__builtin_isfinite(sum)) return sum;
    const double part = tg_rounded(sum - product);
    const double error = tg_rounded(product - tg_rounded(sum - part)) + tg_rounded(z - part);
    long long bits = tg_bits<long long>(sum);
    if (error == 0 || bits & 1) return sum;
    return tg_bits<double>(bits + ((error > 0) == (sum > 0) ? 1 : -1));
}

// ---- Types. T holds `bits`, knows from(double) and float(); T2 two of them, as one access. ---------

#define TG_SMALL_FLOAT_TYPE(T, M, BIAS)                                                             \
    struct __attribute__((aligned(2), may_alias)) T {                                              \
        unsigned short bits;                                                                       \
        T() = default;                                                                             \
        static TG_INLINE T raw(unsigned short bits)                                                \
        {                                                                                          \
            T made;                                                                                \
            made.bits = bits;                                                                      \
            return made;                                                                           \
        }                                                                                          \
        static TG_INLINE T from(double x, tg_rounding mode = TG_NEAREST)                           \
        {                                                                                          \
            return raw(tg_narrow<M, BIAS>(x, mode));                                               \
        }                                                                                          \
        TG_INLINE T(float x) : bits(tg_narrow<M, BIAS>(x)) {}                                      \
        TG_INLINE T(double x) : bits(tg_narrow<M, BIAS>(x)) {}                                     \
        TG_INLINE T(int x) : bits(tg_narrow<M, BIAS>(x)) {}                                        \
        TG_INLINE T(unsigned x) : bits(tg_narrow<M, BIAS>(x)) {}                                   \
        TG_INLINE T(short x) : bits(tg_narrow<M, BIAS>(x)) {}                                      \
        TG_INLINE T(unsigned short x) : bits(tg_narrow<M, BIAS>(x)) {}                             \
        TG_INLINE T(long long x) : bits(tg_narrow<M, BIAS>((double)x)) {}                          \
        TG_INLINE T(unsigned long long x) : bits(tg_narrow<M, BIAS>((double)x)) {}                 \
        TG_INLINE T(long x) : bits(tg_narrow<M, BIAS>((double)x)) {}                               \
        TG_INLINE T(unsigned long x) : bits(tg_narrow<M, BIAS>((double)x)) {}                      \
        TG_INLINE operator float() const;                                                          \
    };

#define TG_SMALL_FLOAT_PAIR(T, T2)                                                                  \
    struct __attribute__((aligned(4), may_alias)) T2 {                                             \
        T x, y;                                                                                    \
        T2() = default;                                                                            \
        TG_INLINE T2(T x, T y) : x(x), y(y) {}                                                     \
        TG_INLINE T2(const T2 &other) { tg_copy_vector<4>(this, &other); }                         \
        TG_INLINE T2 &operator=(const T2 &other)                                                   \
        {                                                                                          \
            tg_copy_vector<4>(this, &other);                                                       \
            return *this;                                                                          \
        }                                                                                          \
    };

// ---- Functions of one number and of pairs: name(T), name2(T2). --------------------------------------

#define TG_PAIRWISE1(T, T2, name, name2)                                                            \
    TG_INLINE T2 name2(T2 a) { return T2(name(a.x), name(a.y)); }
#define TG_PAIRWISE2(T, T2, name, name2)                                                            \
    TG_INLINE T2 name2(T2 a, T2 b) { return T2(name(a.x, b.x), name(a.y, b.y)); }

#define TG_SMALL_UNARY(T, T2, name, name2, expression)                                              \
    TG_INLINE T name(T a)                                                                          \
    {                                                                                              \
        const double x = (float)a;                                                                 \
        return T::from(expression);                                                                \
    }                                                                                              \
    TG_PAIRWISE1(T, T2, name, name2)

#define TG_SMALL_BINARY(T, T2, name, name2, expression)                                             \
    TG_INLINE T name(T a, T b)                                                                     \
    {                                                                                              \
        const double x = (float)a, y = (float)b;                                                   \
        return T::from(expression);                                                                \
    }                                                                                              \
    TG_PAIRWISE2(T, T2, name, name2)

#define TG_SMALL_TERNARY(T, T2, name, name2, expression)                                            \
    TG_INLINE T name(T a, T b, T c)                                                                \
    {                                                                                              \
        const double x = (float)a, y = (float)b, z = (float)c;                                     \
        return T::from(expression);                                                                \
    }                                                                                              \
    TG_INLINE T2 name2(T2 a, T2 b, T2 c) { return T2(name(a.x, b.x, c.x), name(a.y, b.y, c.y)); }

// Comparisons: of a NaN false, those with u true; of pairs a pair of 1 and 0, those with b one bool.
#define TG_SMALL_COMPARISON(T, T2, name, operation)                                                 \
    TG_INLINE bool __h##name(T a, T b) { return (float)a operation (float)b; }                      \
    TG_INLINE bool __h##name##u(T a, T b)                                                          \
    {                                                                                              \
        const float x = a, y = b;                                                                  \
        return x != x || y != y || x operation y;                                                  \
    }                                                                                              \
    TG_INLINE T2 __h##name##2(T2 a, T2 b)                                                          \
    {                                                                                              \
        return T2(T(__h##name(a.x, b.x) ? 1.0f : 0.0f), T(__h##name(a.y, b.y) ? 1.0f : 0.0f));      \
    }                                                                                              \
    TG_INLINE bool __hb##name##2(T2 a, T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
    TG_INLINE bool operator operation(T a, T b) { return __h##name(a, b); }                        \
    TG_INLINE bool operator operation(T2 a, T2 b) { return __hb##name##2(a, b); }

#define TG_SMALL_OPERATOR(T, T2, sign, name, name2)                                                 \
    TG_INLINE T operator sign(T a, T b) { return name(a, b); }                                     \
    TG_INLINE T2 operator sign(T2 a, T2 b) { return name2(a, b); }                                 \
    TG_INLINE T &operator sign##=(T &a, T b) { return a = name(a, b); }                             \
    TG_INLINE T2 &operator sign##=(T2 &a, T2 b) { return a = name2(a, b); }

TG_INLINE double tg_clamped(double x) { return x != x ? 0.0 : __builtin_fmin(__builtin_fmax(x, 0.0), 1.0); }
TG_INLINE double tg_not_below_zero(double x) { return x != x ? x : __builtin_fmax(x, 0.0); }

#define TG_SMALL_FLOAT_FUNCTIONS(T, T2)                                                             \
    TG_SMALL_BINARY(T, T2, __hadd, __hadd2, x + y)                                                 \
    TG_SMALL_BINARY(T, T2, __hsub, __hsub2, x - y)                                                 \
    TG_SMALL_BINARY(T, T2, __hmul, __hmul2, x * y)                                                 \
    TG_SMALL_BINARY(T, T2, __hdiv, __h2div, x / y)                                                 \
    TG_SMALL_BINARY(T, T2, __hadd_rn, __hadd2_rn, x + y)                                           \
    TG_SMALL_BINARY(T, T2, __hsub_rn, __hsub2_rn, x - y)                                           \
    TG_SMALL_BINARY(T, T2, __hmul_rn, __hmul2_rn, x * y)                                           \
    TG_SMALL_BINARY(T, T2, __hadd_sat, __hadd2_sat, tg_clamped(x + y))                             \
    TG_SMALL_BINARY(T, T2, __hsub_sat, __hsub2_sat, tg_clamped(x - y))                             \
    TG_SMALL_BINARY(T, T2, __hmul_sat, __hmul2_sat, tg_clamped(x * y))                             \
    TG_SMALL_BINARY(T, T2, __hmax, __hmax2, __builtin_fmax(x, y))                                  \
    TG_SMALL_BINARY(T, T2, __hmin, __hmin2, __builtin_fmin(x, y))                                  \
    TG_SMALL_BINARY(T, T2, __hmax_nan, __hmax2_nan, x != x || y != y ? x + y : __builtin_fmax(x, y)) \
    TG_SMALL_BINARY(T, T2, __hmin_nan, __hmin2_nan, x != x || y != y ? x + y : __builtin_fmin(x, y)) \
    TG_SMALL_TERNARY(T, T2, __hfma, __hfma2, tg_fused(x, y, z))                                    \
    TG_SMALL_TERNARY(T, T2, __hfma_sat, __hfma2_sat, tg_clamped(tg_fused(x, y, z)))                \
    TG_SMALL_TERNARY(T, T2, __hfma_relu, __hfma2_relu, tg_not_below_zero(tg_fused(x, y, z)))       \
    TG_INLINE T __hneg(T a) { return T::raw(a.bits ^ 0x8000); }                                    \
    TG_INLINE T __habs(T a) { return T::raw(a.bits & 0x7fff); }                                    \
    TG_PAIRWISE1(T, T2, __hneg, __hneg2)                                                           \
    TG_PAIRWISE1(T, T2, __habs, __habs2)                                                           \
    TG_INLINE bool __hisnan(T a) { return (float)a != (float)a; }                                  \
    TG_INLINE int __hisinf(T a)                                                                    \
    {                                                                                              \
        const float x = a;                                                                         \
        return __builtin_isinf(x) ? (x > 0 ? 1 : -1) : 0;                                          \
    }                                                                                              \
    TG_INLINE T2 __hisnan2(T2 a)                                                                   \
    {                                                                                              \
        return T2(T(__hisnan(a.x) ? 1.0f : 0.0f), T(__hisnan(a.y) ? 1.0f : 0.0f));                  \
    }                                                                                              \
    TG_SMALL_COMPARISON(T, T2, eq, ==)                                                             \
    TG_SMALL_COMPARISON(T, T2, ne, !=)                                                             \
    TG_SMALL_COMPARISON(T, T2, lt, <)                                                              \
    TG_SMALL_COMPARISON(T, T2, le, <=)                                                             \
    TG_SMALL_COMPARISON(T, T2, gt, >)                                                              \
    TG_SMALL_COMPARISON(T, T2, ge, >=)                                                             \
    TG_SMALL_OPERATOR(T, T2, +, __hadd, __hadd2)                                                   \
    TG_SMALL_OPERATOR(T, T2, -, __hsub, __hsub2)                                                   \
    TG_SMALL_OPERATOR(T, T2, *, __hmul, __hmul2)                                                   \
    TG_SMALL_OPERATOR(T, T2, /, __hdiv, __h2div)                                                   \
    TG_INLINE T operator-(T a) { return __hneg(a); }                                               \
    TG_INLINE T2 operator-(T2 a) { return __hneg2(a); }                                            \
    TG_INLINE T operator+(T a) { return a; }                                                       \
    TG_SMALL_UNARY(T, T2, hsqrt, h2sqrt, __builtin_sqrt(x))                                        \
    TG_SMALL_UNARY(T, T2, hrsqrt, h2rsqrt, 1.0 / __builtin_sqrt(x))                                \
    TG_SMALL_UNARY(T, T2, hrcp, h2rcp, 1.0 / x)                                                    \
    TG_SMALL_UNARY(T, T2, hexp, h2exp, __builtin_exp(x))                                           \
    TG_SMALL_UNARY(T, T2, hexp2, h2exp2, __builtin_exp2(x))                                        \
    TG_SMALL_UNARY(T, T2, hexp10, h2exp10, __builtin_pow(10.0, x))                                 \
    TG_SMALL_UNARY(T, T2, hlog, h2log, __builtin_log(x))                                           \
    TG_SMALL_UNARY(T, T2, hlog2, h2log2, __builtin_log2(x))                                        \
    TG_SMALL_UNARY(T, T2, hlog10, h2log10, __builtin_log10(x))                                     \
    TG_SMALL_UNARY(T, T2, hsin, h2sin, __builtin_sin(x))                                           \
    TG_SMALL_UNARY(T, T2, hcos, h2cos, __builtin_cos(x))                                           \
    TG_SMALL_UNARY(T, T2, htanh, h2tanh, __builtin_tanh(x))                                        \
    TG_SMALL_UNARY(T, T2, hfloor, h2floor, __builtin_floor(x))                                     \
    TG_SMALL_UNARY(T, T2, hceil, h2ceil, __builtin_ceil(x))                                        \
    TG_SMALL_UNARY(T, T2, htrunc, h2trunc, __builtin_trunc(x))                                     \
    TG_SMALL_UNARY(T, T2, hrint, h2rint, __builtin_rint(x))

// ---- To and from other types: `half` and `bfloat16` in the names of conversions. ----------------------

#define TG_SMALL_INTEGER(T, name, Integer, integer)                                                 \
    TG_INLINE T __##integer##2##name##_rn(Integer x) { return T::from((double)x); }                \
    TG_INLINE T __##integer##2##name##_rz(Integer x) { return T::from((double)x, TG_TO_ZERO); }    \
    TG_INLINE T __##integer##2##name##_ru(Integer x) { return T::from((double)x, TG_UP); }         \
    TG_INLINE T __##integer##2##name##_rd(Integer x) { return T::from((double)x, TG_DOWN); }       \
    TG_INLINE Integer __##name##2##integer##_rn(T x)                                               \
    {                                                                                              \
        return tg_to_integer<Integer>(__builtin_rintf(x));                                         \
    }                                                                                              \
    TG_INLINE Integer __##name##2##integer##_rz(T x)                                               \
    {                                                                                              \
        return tg_to_integer<Integer>(__builtin_truncf(x));                                        \
    }                                                                                              \
    TG_INLINE Integer __##name##2##integer##_ru(T x)                                               \
    {                                                                                              \
        return tg_to_integer<Integer>(__builtin_ceilf(x));                                         \
    }                                                                                              \
    TG_INLINE Integer __##name##2##integer##_rd(T x)                                               \
    {                                                                                              \
        return tg_to_integer<Integer>(__builtin_floorf(x));                                        \
    }

#define TG_SMALL_CONVERSIONS(T, T2, name, name2)                                                    \
    TG_INLINE T __float2##name(float x) { return T::from(x); }                                     \
    TG_INLINE T __float2##name##_rn(float x) { return T::from(x); }                                \
    TG_INLINE T __float2##name##_rz(float x) { return T::from(x, TG_TO_ZERO); }                    \
    TG_INLINE T __float2##name##_ru(float x) { return T::from(x, TG_UP); }                         \
    TG_INLINE T __float2##name##_rd(float x) { return T::from(x, TG_DOWN); }                       \
    TG_INLINE T __double2##name(double x) { return T::from(x); }                                   \
    TG_INLINE float __##name##2float(T x) { return x; }                                            \
    TG_INLINE T2 __float2##name2##_rn(float x) { return T2(T(x), T(x)); }                          \
    TG_INLINE T2 __floats2##name2##_rn(float x, float y) { return T2(T(x), T(y)); }                \
    TG_INLINE T2 __float22##name2##_rn(float2 v) { return T2(T(v.x), T(v.y)); }                    \
    TG_INLINE float2 __##name2##2float2(T2 v) { return make_float2(v.x, v.y); }                    \
    TG_INLINE T2 __##name##2##name2(T x) { return T2(x, x); }                                      \
    TG_INLINE T2 make_##name2(T x, T y) { return T2(x, y); }                                       \
    TG_INLINE T __low2##name(T2 v) { return v.x; }                                                 \
    TG_INLINE T __high2##name(T2 v) { return v.y; }                                                \
    TG_INLINE float __low2float(T2 v) { return v.x; }                                              \
    TG_INLINE float __high2float(T2 v) { return v.y; }                                             \
    TG_INLINE T2 __low2##name2(T2 v) { return T2(v.x, v.x); }                                      \
    TG_INLINE T2 __high2##name2(T2 v) { return T2(v.y, v.y); }                                     \
    TG_INLINE T2 __lows2##name2(T2 a, T2 b) { return T2(a.x, b.x); }                               \
    TG_INLINE T2 __highs2##name2(T2 a, T2 b) { return T2(a.y, b.y); }                              \
    TG_INLINE T2 __lowhigh2highlow(T2 v) { return T2(v.y, v.x); }                                  \
    TG_INLINE short __##name##_as_short(T x) { return (short)x.bits; }                             \
    TG_INLINE unsigned short __##name##_as_ushort(T x) { return x.bits; }                          \
    TG_INLINE T __short_as_##name(short x) { return T::raw((unsigned short)x); }                   \
    TG_INLINE T __ushort_as_##name(unsigned short x) { return T::raw(x); }                         \
    TG_SMALL_INTEGER(T, name, int, int)                                                            \
    TG_SMALL_INTEGER(T, name, unsigned, uint)                                                      \
    TG_SMALL_INTEGER(T, name, short, short)                                                        \
    TG_SMALL_INTEGER(T, name, unsigned short, ushort)                                              \
    TG_SMALL_INTEGER(T, name, long long, ll)                                                       \
    TG_SMALL_INTEGER(T, name, unsigned long long, ull)                                             \
    TG_INLINE T atomicAdd(T *address, T value, TG_HERE)                                            \
    {                                                                                              \
        return T::raw(tg_atomic<tg_sum_of<T>, unsigned short>((unsigned short *)address,           \
                                                              value.bits, file, line));            \
    }                                                                                              \
    TG_INLINE T2 atomicAdd(T2 *address, T2 value, TG_HERE)                                         \
    {                                                                                              \
        return T2(atomicAdd(&address->x, value.x, file, line),                                     \
                  atomicAdd(&address->y, value.y, file, line));                                    \
    }

// The bits of a sum, for the loop under all atomics.
template <class T> struct tg_sum_of {
    template <class Bits> static TG_UNINSTRUMENTED Bits apply(Bits old, Bits value)
    {
        return __hadd(T::raw(old), T::raw(value)).bits;
    }
};
