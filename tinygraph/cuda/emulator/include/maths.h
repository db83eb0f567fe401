// CUDA's mathematical functions, from the compiler's builtins and the C library's libm.
//
// The set of overloads is the one that NVRTC declares (float and double; nothing for integers, so
// `sqrt(2)` is ambiguous here as there): what compiles on the emulator compiles for the GPU.
// Source: CUDA Math API Reference Manual.
//
// The numbers may differ from a GPU's in the last bits. Fast intrinsics (__expf, __sinf, ...) are
// computed to full precision here; on a GPU they are approximations.
#pragma once

#include "tg_attributes.h"

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
    TG_INLINE float name##f(float x) { return __builtin_##name##f(x); }                          \
    TG_INLINE float name(float x) { return __builtin_##name##f(x); }                             \
    TG_INLINE double name(double x) { return __builtin_##name(x); }

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
    TG_INLINE float name##f(float x, float y) { return __builtin_##name##f(x, y); }              \
    TG_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }                 \
    TG_INLINE double name(double x, double y) { return __builtin_##name(x, y); }                 \
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

TG_INLINE float pow(float x, int n) { return __builtin_powf(x, (float)n); }
TG_INLINE double pow(double x, int n) { return __builtin_pow(x, (double)n); }

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
#define TG_TO_INTEGER(name, Integer)                                                               \
    TG_INLINE Integer name##f(float x) { return __builtin_##name##f(x); }                        \
    TG_INLINE Integer name(float x) { return __builtin_##name##f(x); }                           \
    TG_INLINE Integer name(double x) { return __builtin_##name(x); }

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

// ---- What CUDA adds to the C library. ----------------------------------------------------------

// Defines the float forms of a double function.
#define TG_FROM_DOUBLE(name)                                                                     \
    TG_INLINE float name##f(float x) { return (float)name((double)x); }                          \
    TG_INLINE float name(float x) { return (float)name((double)x); }

TG_INLINE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
TG_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
TG_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
TG_INLINE double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
TG_INLINE double exp10(double x) { return __builtin_pow(10.0, x); }
TG_INLINE double normcdf(double x) { return 0.5 * __builtin_erfc(-x * M_SQRT1_2); }
TG_FROM_DOUBLE(rcbrt) TG_FROM_DOUBLE(exp10) TG_FROM_DOUBLE(normcdf)

// sin(pi * (x + quadrants / 2)). The period is taken off before the multiplication by pi, so that
// sinpi(1e6 + 0.5) is exactly 1.
TG_INLINE double tg_sinpi(double x, int quadrants)
{
    if (!__builtin_isfinite(x)) return __builtin_nan("");
    double turn = x - 2.0 * __builtin_rint(0.5 * x);  // in [-1, 1], exact
    int quarter = (int)__builtin_rint(2.0 * turn);
    double angle = M_PI * (turn - 0.5 * quarter);  // in [-pi/4, pi/4]
    quarter += quadrants;
    double magnitude = quarter & 1 ? __builtin_cos(angle) : __builtin_sin(angle);
    return quarter & 2 ? -magnitude : magnitude;
}
TG_INLINE double sinpi(double x)
{
    if (x == __builtin_rint(x) && __builtin_isfinite(x)) return __builtin_copysign(0.0, x);
    return tg_sinpi(x, 0);
}
TG_INLINE double cospi(double x) { return tg_sinpi(x, 1); }
TG_FROM_DOUBLE(sinpi) TG_FROM_DOUBLE(cospi)

// Two results at once.
#define TG_SINE_AND_COSINE(name, Real, sine, cosine)                                             \
    TG_INLINE void name(Real x, Real* s, Real* c)                                                \
    {                                                                                            \
        *s = sine(x);                                                                            \
        *c = cosine(x);                                                                          \
    }
TG_SINE_AND_COSINE(sincosf, float, sinf, cosf)
TG_SINE_AND_COSINE(sincos, float, sinf, cosf)
TG_SINE_AND_COSINE(sincos, double, sin, cos)
TG_SINE_AND_COSINE(sincospif, float, sinpif, cospif)
TG_SINE_AND_COSINE(sincospi, double, sinpi, cospi)
TG_SINE_AND_COSINE(__sincosf, float, sinf, cosf)

// ---- Fast intrinsics: approximations on a GPU, full precision here. ----------------------------

TG_INLINE float __expf(float x) { return __builtin_expf(x); }
TG_INLINE float __exp10f(float x) { return exp10f(x); }
TG_INLINE float __logf(float x) { return __builtin_logf(x); }
TG_INLINE float __log2f(float x) { return __builtin_log2f(x); }
TG_INLINE float __log10f(float x) { return __builtin_log10f(x); }
TG_INLINE float __powf(float x, float y) { return __builtin_powf(x, y); }
TG_INLINE float __sinf(float x) { return __builtin_sinf(x); }
TG_INLINE float __cosf(float x) { return __builtin_cosf(x); }
TG_INLINE float __tanf(float x) { return __builtin_tanf(x); }
TG_INLINE float __tanhf(float x) { return __builtin_tanhf(x); }
TG_INLINE float __fdividef(float x, float y) { return x / y; }
TG_INLINE float fdividef(float x, float y) { return x / y; }

// x clamped to [0, 1]; NaN gives 0.
TG_INLINE float __saturatef(float x)
{
    return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f);
}

// ---- One operation, rounded to nearest even, never merged into a fused multiply-add. -----------

// A value that has been in a register of its own: the compiler cannot contract x * y + z across it.
TG_INLINE float tg_rounded(float x) { __asm__("" : "+" TG_FLOAT_REGISTER(x)); return x; }
TG_INLINE double tg_rounded(double x) { __asm__("" : "+" TG_FLOAT_REGISTER(x)); return x; }

TG_INLINE float __fadd_rn(float x, float y) { return tg_rounded(x + y); }
TG_INLINE float __fsub_rn(float x, float y) { return tg_rounded(x - y); }
TG_INLINE float __fmul_rn(float x, float y) { return tg_rounded(x * y); }
TG_INLINE float __fdiv_rn(float x, float y) { return tg_rounded(x / y); }
TG_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TG_INLINE float __frcp_rn(float x) { return 1.0f / x; }
TG_INLINE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
TG_INLINE float __frsqrt_rn(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
TG_INLINE double __dadd_rn(double x, double y) { return tg_rounded(x + y); }
TG_INLINE double __dsub_rn(double x, double y) { return tg_rounded(x - y); }
TG_INLINE double __dmul_rn(double x, double y) { return tg_rounded(x * y); }
TG_INLINE double __ddiv_rn(double x, double y) { return tg_rounded(x / y); }
TG_INLINE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
TG_INLINE double __drcp_rn(double x) { return 1.0 / x; }
TG_INLINE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }

// ---- abs, min, max. ----------------------------------------------------------------------------

TG_INLINE int abs(int x) { return x < 0 ? -x : x; }
TG_INLINE long abs(long x) { return x < 0 ? -x : x; }
TG_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
TG_INLINE float abs(float x) { return __builtin_fabsf(x); }
TG_INLINE double abs(double x) { return __builtin_fabs(x); }
TG_INLINE long labs(long x) { return abs(x); }
TG_INLINE long long llabs(long long x) { return abs(x); }

// As in C, signed meets unsigned as unsigned: max(-1, 1u) is 4294967295.
#define TG_MIN_MAX(Result, First, Second)                                                        \
    TG_INLINE Result min(First a, Second b) { return (Result)a < (Result)b ? a : b; }            \
    TG_INLINE Result max(First a, Second b) { return (Result)a > (Result)b ? a : b; }

#define TG_MIN_MAX_INTEGERS(Signed, Unsigned)                                                    \
    TG_MIN_MAX(Signed, Signed, Signed)                                                           \
    TG_MIN_MAX(Unsigned, Unsigned, Unsigned)                                                     \
    TG_MIN_MAX(Unsigned, Signed, Unsigned)                                                       \
    TG_MIN_MAX(Unsigned, Unsigned, Signed)

TG_MIN_MAX_INTEGERS(int, unsigned int)
TG_MIN_MAX_INTEGERS(long, unsigned long)
TG_MIN_MAX_INTEGERS(long long, unsigned long long)

// Floating point: a NaN loses, as in fmin and fmax.
#define TG_MIN_MAX_REAL(Result, First, Second)                                                   \
    TG_INLINE Result min(First a, Second b) { return fmin((Result)a, (Result)b); }               \
    TG_INLINE Result max(First a, Second b) { return fmax((Result)a, (Result)b); }

TG_MIN_MAX_REAL(float, float, float)
TG_MIN_MAX_REAL(double, double, double)
TG_MIN_MAX_REAL(double, float, double)
TG_MIN_MAX_REAL(double, double, float)

TG_INLINE unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
TG_INLINE unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
TG_INLINE long long llmin(long long a, long long b) { return min(a, b); }
TG_INLINE long long llmax(long long a, long long b) { return max(a, b); }
TG_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b)
{
    return min(a, b);
}
TG_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b)
{
    return max(a, b);
}

#undef TG_ONE_ARGUMENT
#undef TG_TWO_ARGUMENTS
#undef TG_WITH_SECOND
#undef TG_TO_INTEGER
#undef TG_CLASSIFY
#undef TG_FROM_DOUBLE
#undef TG_SINE_AND_COSINE
#undef TG_MIN_MAX
#undef TG_MIN_MAX_INTEGERS
#undef TG_MIN_MAX_REAL
