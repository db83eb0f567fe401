// __nv_bfloat16 and __nv_bfloat162: the upper half of a float, 8 bits of exponent and 7 behind the
// point.
//
// Source: CUDA Math API Reference Manual, "Bfloat16 Precision". Results are rounded to nearest even.
#pragma once

#include "tg_small_float.h"

TG_SMALL_FLOAT_TYPE(__nv_bfloat16, 7, 127)

TG_INLINE __nv_bfloat16::operator float() const { return tg_bits<float>((unsigned)bits << 16); }

TG_SMALL_FLOAT_PAIR(__nv_bfloat16, __nv_bfloat162)
TG_SMALL_FLOAT_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
TG_SMALL_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
TG_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162(x, y);
}

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
