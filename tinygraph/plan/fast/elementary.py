"""exp, log and tanh of one number, in additions and multiplications that become vectors.

The library's functions are calls, one for each element; a loop with these has none, and the
compiler computes as many elements at once as a register holds.

    exp     x = n ln 2 + r, |r| <= ln 2 / 2       exp(x) = 2^n (1 + q),  q = r + r^2 / 2! + ...
    tanh    E = exp(2 |x|) - 1 = 2^n q + (2^n - 1)          tanh(x) = +- E / (E + 2)
    log     x = 2^n (1 + f), 1 / sqrt 2 <= 1 + f < sqrt 2,  s = f / (2 + f)
            log(1 + f) = 2 artanh(s) = f - s (f - 2 s^2 / 3 - 2 s^4 / 5 - ...)

The series end where the next term is below half a unit in the last place.  Results are within three
such units of the exact ones, subnormal numbers included; NaN, infinities and the sign of zero are
those of numpy.

Source: Ng and others, fdlibm (Sun Microsystems, 1993), for ln 2 in two parts, exp(x) - 1 as
2^n q + (2^n - 1), and the form of log(1 + f); Kahan, "Implementation of algorithms", 1973, for the
sum with 1.5 * 2^p, which rounds to a whole number.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, log, sqrt
from typing import Any

import numpy as np

Function = Callable[[Any], Any]

# By bytes of a number: the part of ln 2 whose products with n are exact, and the rest of it; the x
# at which exp is 0, at which it is inf, and at which tanh is 1; the terms of q and of artanh.
_LN2 = {
    4: (0.693359375, -2.12194440054690583e-4),
    8: (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
_RANGE = {4: (-104.0, 89.0, 10.0), 8: (-746.0, 710.0, 20.0)}
_TERMS = {4: (7, 4), 8: (13, 9)}


def elementary(dtype: Any, inlined: Callable[[Function], Function]) -> dict[str, Function]:
    """The functions for float32 or float64, each made a part of loops by `inlined`.

    >>> run = elementary(np.dtype(np.float64), lambda function: function)
    >>> print(round(run["exp"](np.float64(1.0)), 12), run["tanh"](np.float64(-0.0)))
    2.718281828459 -0.0
    """
    real, size = np.dtype(dtype).type, np.dtype(dtype).itemsize
    whole: Any = np.int32 if size == 4 else np.int64
    digits, bias = (23, 127) if size == 4 else (52, 1023)
    rounder = real(1.5 * 2**digits)  # adding it moves the digits below 1 out of the number
    rounder_bits = int(rounder.view(whole))
    ln2_high, ln2_low = (real(part) for part in _LN2[size])
    per_ln2, zero, one, two = real(1 / log(2)), real(0), real(1), real(2)
    lowest, highest, flat = (real(bound) for bound in _RANGE[size])
    powers, squares = _TERMS[size]
    taylor = tuple([real(1 / factorial(k)) for k in range(powers, 1, -1)])
    artanh = tuple([real(2 / (2 * k + 1)) for k in range(squares, 0, -1)])
    root_bits = int(real(sqrt(0.5)).view(whole))
    least, scale = np.finfo(real).tiny, real(2.0**digits)
    inf, nan = real(np.inf), real(np.nan)

    @inlined
    def reduced(x: Any) -> Any:
        """n, as an integer, and q of exp."""
        shifted = x * per_ln2 + rounder
        n = shifted - rounder
        r = (x - n * ln2_high) - n * ln2_low
        series = zero
        for term in taylor:
            series = (series + term) * r
        return whole(real(shifted).view(whole) - rounder_bits), r + series * r

    @inlined
    def exp(x: Any) -> Any:
        x = lowest if x < lowest else x
        x = highest if x > highest else x
        n, q = reduced(x)
        some = whole(n >> 1)  # 2^n itself may be too large, or too small, for a number
        first = whole(whole(some + bias) << digits).view(real)
        second = whole(whole(n - some + bias) << digits).view(real)
        return (one + q) * first * second

    @inlined
    def tanh(x: Any) -> Any:
        size = abs(x)
        size = flat if size > flat else size
        n, q = reduced(two * size)
        power = whole(whole(n + bias) << digits).view(real)
        grown = power * q + (power - one)
        y = grown / (grown + two)
        return x if x == zero else (y if x > zero else -y)

    @inlined
    def log_(x: Any) -> Any:
        small = x < least
        bits = real(x * scale if small else x).view(whole)
        n = whole(whole(bits - root_bits) >> digits)
        f = whole(bits - whole(n << digits)).view(real) - one
        exponent = whole(n + rounder_bits).view(real) - rounder
        exponent -= real(digits) if small else zero
        s = f / (two + f)
        square, series = s * s, zero
        for term in artanh:
            series = (series + term) * square
        y = exponent * ln2_high + (f - (s * (f - series) - exponent * ln2_low))
        y = y if x < inf else x  # also where x is NaN
        return nan if x < zero else (-inf if x == zero else y)

    return {"exp": exp, "log": log_, "tanh": tanh}
