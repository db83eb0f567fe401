// __half and __half2: numbers of 5 bits of exponent and 10 behind the point (IEEE 754 binary16).
//
// Source: CUDA Math API Reference Manual, "Half Precision". Results are rounded to nearest even; on a
// GPU hexp, hsin and their like may differ in the last bit.
#pragma once

#include "tg_small_float.h"

TG_SMALL_FLOAT_TYPE(__half, 10, 15)

// The exponent of a float is that of a half, moved: a multiplication moves it, and makes normal
// numbers of those without a leading one.
TG_INLINE __half::operator float() const
{
    const unsigned magnitude = (unsigned)(bits & 0x7fff) << 13, sign = (unsigned)(bits & 0x8000) << 16;
    if (magnitude >= 0x0f800000u) return tg_bits<float>(sign | magnitude | 0x7f800000u);
    const float moved = tg_bits<float>(magnitude) * tg_bits<float>(0x77800000u);  // * 2^112
    return tg_bits<float>(sign | tg_bits<unsigned>(moved));
}

TG_SMALL_FLOAT_PAIR(__half, __half2)
TG_SMALL_FLOAT_FUNCTIONS(__half, __half2)
TG_SMALL_CONVERSIONS(__half, __half2, half, half2)
TG_INLINE __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }

typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
