"""The error function, the integral of the bell curve from -x to x.

    y  = 2 / sqrt(pi) * integral of exp(-t**2) over t from 0 to x
    gx = gy * 2 / sqrt(pi) * exp(-x**2)

    |x| < 1   its power series, whose digits are all good near 0
    else      1 - erfc(|x|), with the sign of x

Source: Abramowitz, Stegun, "Handbook of mathematical functions", 1964, 7.1.5.  erfc: Shepherd,
Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc(x) in 0 <= x < infinity",
Mathematics of Computation 36, 1981: one smooth function on the half line, so no branches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Op
from tinygraph.ops.cast import floats
from tinygraph.ops.shared.unary import Unary, float_unary
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor

SLOPE = 2 / math.sqrt(math.pi)  # at 0
SERIES = [SLOPE * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(18)]  # 18th: 4e-18

# (1 + 2 x) exp(x**2) erfc(x) as a polynomial of t = (x - 3.75) / (x + 3.75), constant term first:
# its Chebyshev series, computed with 50 digits, of which the terms left out sum to 6e-17.
ERFC = (
    1.2375126308378275, -0.14024059858554697, 3.5854154854790257e-3, 0.0822767384901452,
    -0.10880393014244462, 0.09230432116037748, -0.05869339857664934, 0.028362277418956406,
    -9.746579683265262e-3, 1.7556258528952954e-3, 2.93714378044958e-4, -2.901540805408417e-4,
    5.164652974177416e-5, 2.238423915508223e-5, -1.1438048033346894e-5, -9.73559896736775e-7,
    1.7419821586224816e-6, -5.7218230603224086e-8, -2.4857126248016745e-7, 2.3263508708859124e-8,
    3.197926671666804e-8, -3.744210080962018e-9, -2.623107347133476e-9, 3.1114333809799254e-10,
)  # fmt: skip


def erfc(x: Array) -> Array:
    """The complementary error function, to about 1e-13 relative in float64, tails included.

    >>> float(erfc(np.array([0.5]))[0]), math.erfc(0.5)
    (0.4795001221869535, 0.4795001221869535)
    """
    size = np.minimum(np.abs(x), 28)  # there exp(-size**2) is 0, and inf / inf does not arise
    t = (size - 3.75) / (size + 3.75)
    y = _polynomial(t, ERFC)
    y *= np.exp(-size * size)
    y /= 1 + 2 * size
    sign = np.copysign(x.dtype.type(1), x)
    return (1 - sign) + sign * y  # erfc(-x) = 2 - erfc(x)


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
        small *= _polynomial(np.square(small), SERIES)
        small *= np.less(size, 1)
        np.subtract(1, erfc(size), out=y)
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
