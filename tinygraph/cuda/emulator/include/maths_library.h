// The C library's mathematical functions and constants, for kernels that stand alone.
//
// The set of overloads is the one that NVRTC declares (float and double; nothing for integers, so
// `sqrt(2)` is ambiguous here as there): what compiles on the emulator compiles for the GPU.
#pragma once

#include "tg_attributes.h"

// ---- Where values are followed. ----------------------------------------------------------------

// What a function of the library gives, whose inside nobody follows, is undefined where its
// argument is: a zero is added that depends on it.
#ifdef TINYGRAPH_FOLLOW
template <unsigned bytes> struct tg_word {
    typedef unsigned int type;
};
template <> struct tg_word<8> {
    typedef unsigned long long type;
};
template <typename T, typename From> TG_INLINE T tg_of(T result, From from)
{
    typename tg_word<sizeof(T)>::type bits;
    typename tg_word<sizeof(From)>::type argument, zero = 0;
    __builtin_memcpy(&bits, &result, sizeof(T));
    __builtin_memcpy(&argument, &from, sizeof(From));
    __asm__("" : "+r"(zero));
    bits += argument * zero;
    __builtin_memcpy(&result, &bits, sizeof(T));
    return result;
}
template <typename T> TG_INLINE T tg_of(T result, T x, T y) { return tg_of(tg_of(result, x), y); }
#else
#define tg_of(result, ...) (result)
#endif

// ---- Constants. NVRTC has none of them: a kernel takes them from a prelude of its own. --------

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX ((double)__DBL_MAX__)
#define DBL_MIN ((double)__DBL_MIN__)
#define DBL_EPSILON ((double)__DBL_EPSILON__)
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (__INT_MAX__ * 2U + 1U)
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-__LONG_LONG_MAX__ - 1LL)
#define ULLONG_MAX (__LONG_LONG_MAX__ * 2ULL + 1ULL)
#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440

// ---- Functions of one argument: f(float), f(double), and the C name ff(float). ----------------

#define TG_ONE_ARGUMENT(name)                                                                    \
    TG_INLINE float name##f(float x) { return tg_of(__builtin_##name##f(x), x); }                \
    TG_INLINE float name(float x) { return tg_of(__builtin_##name##f(x), x); }                   \
    TG_INLINE double name(double x) { return tg_of(__builtin_##name(x), x); }

// Exponentials and logarithms.
TG_ONE_ARGUMENT(exp) TG_ONE_ARGUMENT(exp2) TG_ONE_ARGUMENT(expm1) TG_ONE_ARGUMENT(log)
TG_ONE_ARGUMENT(log2) TG_ONE_ARGUMENT(log10) TG_ONE_ARGUMENT(log1p) TG_ONE_ARGUMENT(logb)
// Roots.
TG_ONE_ARGUMENT(sqrt) TG_ONE_ARGUMENT(cbrt)
// Circular and hyperbolic functions, and their inverses.
TG_ONE_ARGUMENT(sin) TG_ONE_ARGUMENT(cos) TG_ONE_ARGUMENT(tan) TG_ONE_ARGUMENT(asin)
TG_ONE_ARGUMENT(acos) TG_ONE_ARGUMENT(atan) TG_ONE_ARGUMENT(sinh) TG_ONE_ARGUMENT(cosh)
TG_ONE_ARGUMENT(tanh) TG_ONE_ARGUMENT(asinh) TG_ONE_ARGUMENT(acosh) TG_ONE_ARGUMENT(atanh)
// The error function and the gamma function.
TG_ONE_ARGUMENT(erf) TG_ONE_ARGUMENT(erfc) TG_ONE_ARGUMENT(lgamma) TG_ONE_ARGUMENT(tgamma)
// Rounding to an integer: round takes halves away from zero, rint and nearbyint to even.
TG_ONE_ARGUMENT(floor) TG_ONE_ARGUMENT(ceil) TG_ONE_ARGUMENT(trunc) TG_ONE_ARGUMENT(round)
TG_ONE_ARGUMENT(rint) TG_ONE_ARGUMENT(nearbyint)
// Magnitude.
TG_ONE_ARGUMENT(fabs)

// ---- Functions of two arguments of one type. ---------------------------------------------------

// A float with a double is ambiguous in C++; g++ would only warn and choose, so it is deleted.
#define TG_TWO_ARGUMENTS(name)                                                                   \
    TG_INLINE float name##f(float x, float y) { return tg_of(__builtin_##name##f(x, y), x, y); } \
    TG_INLINE float name(float x, float y) { return tg_of(__builtin_##name##f(x, y), x, y); }    \
    TG_INLINE double name(double x, double y) { return tg_of(__builtin_##name(x, y), x, y); }    \
    double name(float, double) = delete;                                                         \
    double name(double, float) = delete;

TG_TWO_ARGUMENTS(pow)
TG_TWO_ARGUMENTS(atan2)
TG_TWO_ARGUMENTS(hypot)
TG_TWO_ARGUMENTS(fmod)       // the sign of x
TG_TWO_ARGUMENTS(remainder)  // x - y * nearest integer
TG_TWO_ARGUMENTS(fdim)       // max(x - y, 0)
TG_TWO_ARGUMENTS(copysign)
TG_TWO_ARGUMENTS(nextafter)
TG_TWO_ARGUMENTS(fmax)  // a NaN loses: fmax(NaN, 1) is 1
TG_TWO_ARGUMENTS(fmin)

TG_INLINE float pow(float x, int n) { return pow(x, (float)n); }
TG_INLINE double pow(double x, int n) { return pow(x, (double)n); }

// ---- Functions with an integer or a second result. ---------------------------------------------

#define TG_WITH_SECOND(name, Second)                                                             \
    TG_INLINE float name##f(float x, Second y) { return __builtin_##name##f(x, y); }             \
    TG_INLINE float name(float x, Second y) { return __builtin_##name##f(x, y); }                \
    TG_INLINE double name(double x, Second y) { return __builtin_##name(x, y); }

// Fraction and exponent: x = frexp(x, &e) * 2**e; ldexp and scalbn go the other way.
TG_WITH_SECOND(frexp, int*)
TG_WITH_SECOND(ldexp, int)
TG_WITH_SECOND(scalbn, int)
// Whole part and rest.
TG_INLINE float modff(float x, float* whole) { return __builtin_modff(x, whole); }
TG_INLINE float modf(float x, float* whole) { return __builtin_modff(x, whole); }
TG_INLINE double modf(double x, double* whole) { return __builtin_modf(x, whole); }
TG_INLINE float remquof(float x, float y, int* q) { *q = 0; return __builtin_remquof(x, y, q); }
TG_INLINE float remquo(float x, float y, int* q) { *q = 0; return __builtin_remquof(x, y, q); }
TG_INLINE double remquo(double x, double y, int* q) { *q = 0; return __builtin_remquo(x, y, q); }

// To an integer type: the exponent; rounded, lrint to even, lround away from zero.
#define TG_TO_INTEGER(name, Integer)                                                             \
    TG_INLINE Integer name##f(float x) { return tg_of(__builtin_##name##f(x), x); }              \
    TG_INLINE Integer name(float x) { return tg_of(__builtin_##name##f(x), x); }                 \
    TG_INLINE Integer name(double x) { return tg_of(__builtin_##name(x), x); }

TG_TO_INTEGER(ilogb, int)
TG_TO_INTEGER(lrint, long)
TG_TO_INTEGER(llrint, long long)
TG_TO_INTEGER(lround, long)
TG_TO_INTEGER(llround, long long)

// x * y + z, rounded once.
TG_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TG_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TG_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

// Classes of numbers. As under NVRTC they give an int.
#define TG_CLASSIFY(name, test)                                                                  \
    TG_INLINE int name(float x) { return (test) ? 1 : 0; }                                       \
    TG_INLINE int name(double x) { return (test) ? 1 : 0; }

TG_CLASSIFY(isnan, __builtin_isnan(x))
TG_CLASSIFY(isinf, __builtin_isinf(x))
TG_CLASSIFY(isfinite, __builtin_isfinite(x))
TG_CLASSIFY(signbit, __builtin_signbit(x))

// ---- abs. ---------------------------------------------------------------------------------------

TG_INLINE int abs(int x) { return x < 0 ? -x : x; }
TG_INLINE long abs(long x) { return x < 0 ? -x : x; }
TG_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
TG_INLINE float abs(float x) { return __builtin_fabsf(x); }
TG_INLINE double abs(double x) { return __builtin_fabs(x); }
TG_INLINE long labs(long x) { return abs(x); }
TG_INLINE long long llabs(long long x) { return abs(x); }

#undef TG_ONE_ARGUMENT
#undef TG_TWO_ARGUMENTS
#undef TG_WITH_SECOND
#undef TG_TO_INTEGER
#undef TG_CLASSIFY
