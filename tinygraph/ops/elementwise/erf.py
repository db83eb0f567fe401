"""The error function, the integral of the bell curve from -x to x.

    y  = 2 / sqrt(pi) * integral of exp(-t**2) over t from 0 to x
    gx = gy * 2 / sqrt(pi) * exp(-x**2)

    |x| < 1   its power series, whose digits are all good near 0
    else      1 - erfc(|x|), with the sign of x

Within 2 units in the last place of float32, and 1e-15 of float64.  Source: Abramowitz, Stegun,
"Handbook of mathematical functions", 1964, 7.1.5.  erfc: one smooth function on the half line, so
no branches, as in Shepherd, Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc(x) in
0 <= x < infinity", Mathematics of Computation 36, 1981; with x + 2.5 for 1 + 2x, which t has too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import floats
from tinygraph.ops.elementwise.unary import Unary, float_unary

SLOPE = 2 / math.sqrt(math.pi)  # at 0
# (erf(x) - x) / x as a polynomial of x**2: with x added last, its rounding is the last one's.
SERIES = [SLOPE * (-1) ** n / (math.factorial(n) * (2 * n + 1)) - (not n) for n in range(18)]

# (x + 2.5) exp(x**2) erfc(x) as a polynomial of t = (x - 2.5) / (x + 2.5), constant term first: its
# Chebyshev series, computed with 50 digits, cut where the rest sums to 3e-17, or 1.3e-8 in float32.
ERFC = (
    1.0540318203057179, -0.80465184943914819, 0.45391411664809603, -0.17125114524611905,
    0.02836155013199473, 8.3930443047621702e-3, -4.8187855232053772e-3, -4.3920830010581551e-4,
    7.0269372335338916e-4, 5.8308058735361604e-5, -1.1260482456045285e-4, -1.953333845777584e-5,
    1.8244308800215586e-5, 6.7573805604299532e-6, -2.3319948528866094e-6, -1.9681374208778159e-6,
    -6.7454190934086883e-9, 4.5426326692975919e-7, 1.3921099556569646e-7, -7.4199560653435425e-8,
    -5.3689273590814678e-8, 6.4620395213359134e-9, 1.1361665461077835e-8, -3.4673885145664284e-11,
    -1.1394337576305021e-9,
)  # fmt: skip
ERFC_FLOAT32 = (
    1.054031815, -0.8046519288, 0.4539145262, -0.1712494874, 0.02835667618, 8.383131874e-3,
    -4.797361166e-3, -4.13924985e-4, 6.592908095e-4, 2.700712982e-5, -7.016012918e-5,
)  # fmt: skip


FAR = 28.0  # there exp(-x**2) is 0, and inf / inf does not arise yet


def erfc(x: Array) -> Array:
    """The complementary error function, to about 1e-13 relative in float64, tails included.

    >>> float(erfc(np.array([0.5]))[0]), math.erfc(0.5)
    (0.4795001221869535, 0.4795001221869535)
    """
    y, _ = right_of(np.minimum(np.abs(x), FAR))
    return (1 - np.copysign(x.dtype.type(1), x)) + np.copysign(y, x)  # erfc(-x) = 2 - erfc(x)


def right_of(x: Array) -> tuple[Array, Array]:
    """erfc(x) and exp(-x**2), for 0 <= x <= FAR."""
    shifted = x + 2.5
    y = _polynomial((x - 2.5) / shifted, ERFC_FLOAT32 if x.dtype == np.float32 else ERFC)
    y /= shifted
    bell = np.exp(x * -x)
    y *= bell
    return y, bell


def _polynomial(t: Array, coefficients: Sequence[float]) -> Array:
    """The sum of coefficients[n] * t**n."""
    y: Array = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        y += coefficient
        y *= t
    y += coefficients[0]
    return y


@frozen
class Erf(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        size = np.abs(x)
        small = np.minimum(size, 1)
        terms = SERIES[:11] if x.dtype == np.float32 else SERIES  # the first left out: 5e-9, 4e-18
        small += small * _polynomial(np.square(small), terms)
        small *= np.less(size, 1)
        np.subtract(1, right_of(np.minimum(size, FAR))[0], out=y)
        y *= np.greater_equal(size, 1)
        y += small
        np.copysign(y, x, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.square(x, out=gx)
        np.negative(gx, out=gx)
        np.exp(gx, out=gx)
        gx *= SLOPE
        gx *= gy


@float_unary
def erf(x: Operand) -> Tensor:
    """The error function: from -1 to 1.

    A normal number is below x with the probability `(1 + erf(x / sqrt(2))) / 2`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.erf([0.0, 1.0, -100.0]).value.round(4)
    array([ 0.    ,  0.8427, -1.    ], dtype=float32)
    """
    return Erf()(floats(x))
