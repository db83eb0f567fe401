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

#ifdef TINYGRAPH_PROGRAM // a program has the C++ library, whose functions have the same overloads
using std::abs;
#else
#include "maths_library.h"
#endif

#ifndef TINYGRAPH_HOST_FILE // a .cpp file of a program: it may have such functions of its own

// ---- What CUDA adds to the C library. ----------------------------------------------------------

// Defines the float forms of a double function.
#define TG_FROM_DOUBLE(name)                                                                     \
    TG_INLINE float name##f(float x) { return (float)name((double)x); }                          \
    TG_INLINE float name(float x) { return (float)name((double)x); }

TG_INLINE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
TG_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
TG_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
TG_INLINE double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
TG_INLINE double normcdf(double x) { return 0.5 * __builtin_erfc(-x * M_SQRT1_2); }
TG_FROM_DOUBLE(rcbrt) TG_FROM_DOUBLE(normcdf)
#ifdef TINYGRAPH_PROGRAM // GNU's C library has these two, for double and with an f
TG_INLINE float exp10(float x) { return exp10f(x); }
TG_INLINE void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
#else
TG_INLINE double exp10(double x) { return __builtin_pow(10.0, x); }
TG_FROM_DOUBLE(exp10)
#endif

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
#ifndef TINYGRAPH_PROGRAM
TG_SINE_AND_COSINE(sincosf, float, sinf, cosf)
TG_SINE_AND_COSINE(sincos, float, sinf, cosf)
TG_SINE_AND_COSINE(sincos, double, sin, cos)
#endif
TG_SINE_AND_COSINE(sincospif, float, sinpif, cospif)
TG_SINE_AND_COSINE(sincospi, double, sinpi, cospi)
TG_SINE_AND_COSINE(__sincosf, float, sinf, cosf)

// ---- Fast intrinsics: approximations on a GPU, full precision here. ----------------------------

TG_INLINE float __expf(float x) { return expf(x); }
TG_INLINE float __exp10f(float x) { return exp10f(x); }
TG_INLINE float __logf(float x) { return logf(x); }
TG_INLINE float __log2f(float x) { return log2f(x); }
TG_INLINE float __log10f(float x) { return log10f(x); }
TG_INLINE float __powf(float x, float y) { return powf(x, y); }
TG_INLINE float __sinf(float x) { return sinf(x); }
TG_INLINE float __cosf(float x) { return cosf(x); }
TG_INLINE float __tanf(float x) { return tanf(x); }
TG_INLINE float __tanhf(float x) { return tanhf(x); }
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

// ---- One operation, rounded down, up, or to zero. ----------------------------------------------

enum tg_direction { TG_MODE_NEAREST, TG_MODE_DOWN, TG_MODE_UP, TG_MODE_ZERO };

// Sets the processor's own mode. What is computed under it reads and writes volatile variables, so
// that the compiler neither computes it in advance nor moves it away.
TG_INLINE void tg_round(tg_direction mode)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x6000u) | (unsigned int)mode << 13);
#else
    const unsigned long modes[] = {0, 2, 1, 3};
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control = (control & ~(3ul << 22)) | modes[mode] << 22;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

#define TG_DIRECTED(T, name, parameters, operands, expression)                                   \
    TG_UNINSTRUMENTED T name parameters                                                          \
    {                                                                                            \
        operands;                                                                                \
        tg_round(mode);                                                                          \
        volatile T result = expression;                                                          \
        tg_round(TG_MODE_NEAREST);                                                               \
        return result;                                                                           \
    }
#define TG_DIRECTED_1(T, name, expression)                                                       \
    TG_DIRECTED(T, tg_##name, (T x, tg_direction mode), volatile T a = x, expression)            \
    TG_IN_MODES(T, name, (T x), x)
#define TG_DIRECTED_2(T, name, expression)                                                       \
    TG_DIRECTED(T, tg_##name, (T x, T y, tg_direction mode), volatile T a = x; volatile T b = y, \
                expression)                                                                      \
    TG_IN_MODES(T, name, (T x, T y), x, y)
#define TG_DIRECTED_3(T, name, expression)                                                       \
    TG_DIRECTED(T, tg_##name, (T x, T y, T z, tg_direction mode),                                \
                volatile T a = x; volatile T b = y; volatile T c = z, expression)                \
    TG_IN_MODES(T, name, (T x, T y, T z), x, y, z)
#define TG_IN_MODES(T, name, parameters, ...)                                                    \
    TG_INLINE T __##name##_rd parameters { return tg_##name(__VA_ARGS__, TG_MODE_DOWN); }        \
    TG_INLINE T __##name##_ru parameters { return tg_##name(__VA_ARGS__, TG_MODE_UP); }          \
    TG_INLINE T __##name##_rz parameters { return tg_##name(__VA_ARGS__, TG_MODE_ZERO); }

TG_DIRECTED_2(float, fadd, a + b)
TG_DIRECTED_2(float, fsub, a - b)
TG_DIRECTED_2(float, fmul, a * b)
TG_DIRECTED_2(float, fdiv, a / b)
TG_DIRECTED_3(float, fmaf, __builtin_fmaf(a, b, c))
TG_DIRECTED_1(float, frcp, 1.0f / a)
TG_DIRECTED_1(float, fsqrt, __builtin_sqrtf(a))
TG_DIRECTED_2(double, dadd, a + b)
TG_DIRECTED_2(double, dsub, a - b)
TG_DIRECTED_2(double, dmul, a * b)
TG_DIRECTED_2(double, ddiv, a / b)
TG_DIRECTED_3(double, fma, __builtin_fma(a, b, c))
TG_DIRECTED_1(double, drcp, 1.0 / a)
TG_DIRECTED_1(double, dsqrt, __builtin_sqrt(a))

// ---- min, max. ---------------------------------------------------------------------------------

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

#endif // TINYGRAPH_HOST_FILE

#undef TG_FROM_DOUBLE
#undef TG_DIRECTED
#undef TG_DIRECTED_1
#undef TG_DIRECTED_2
#undef TG_DIRECTED_3
#undef TG_IN_MODES
#undef TG_SINE_AND_COSINE
#undef TG_MIN_MAX
#undef TG_MIN_MAX_INTEGERS
#undef TG_MIN_MAX_REAL
