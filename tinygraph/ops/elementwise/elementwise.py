"""Functions of one number, element by element.

    neg         y = -x              gx = -gy
    abs         y = |x|             gx = gy * sign(x)           (0 at 0)
    square      y = x ** 2          gx = gy * 2 * x
    sqrt        y = x ** (1/2)      gx = gy / (2 * y)           (x < 0 gives NaN)
    rsqrt       y = x ** (-1/2)     gx = -gy * y ** 3 / 2       (x < 0 gives NaN)
    reciprocal  y = 1 / x           gx = -gy * y ** 2
    exp         y = e ** x          gx = gy * y
    expm1       y = e ** x - 1      gx = gy * e ** x            (all digits of a small y)
    log         y = ln(x)           gx = gy / x                 (x = 0 gives -inf, x < 0 gives NaN)
    log1p       y = ln(1 + x)       gx = gy / (1 + x)           (all digits of a small y)
    log2        y = ln(x) / ln(2)   gx = gy / (x * ln(2))
    sin         y = sin(x)          gx = gy * cos(x)
    cos         y = cos(x)          gx = -gy * sin(x)

Infinities and NaN come out as in numpy.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import ALL, NUMBERS, floats
from tinygraph.ops.elementwise.unary import Unary, float_unary, unary


@frozen
class Neg(Unary, Op):
    of = np.negative
    takes: ClassVar[str] = NUMBERS
    keeps: ClassVar[None] = None

    def gradient(self, mem: Memory, gy: Array, kept: Any, gx: Array) -> None:
        np.negative(gy, out=gx)


@frozen
class Abs(Unary, Op):
    of = np.absolute
    takes: ClassVar[str] = ALL

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.sign(x, out=gx)
        gx *= gy


@frozen
class Square(Unary, Op):
    of = np.square
    takes: ClassVar[str] = NUMBERS

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.multiply(gy, x, out=gx)
        gx *= 2


@frozen
class Sqrt(Unary, Op):
    of = np.sqrt
    keeps: ClassVar[str] = "y"

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.divide(gy, y, out=gx)
        gx /= 2


@frozen
class Rsqrt(Unary, Op):
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.sqrt(x, out=y)
        np.reciprocal(y, out=y)

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.square(y, out=gx)
        gx *= y
        gx /= -2
        gx *= gy


@frozen
class Reciprocal(Unary, Op):
    of = np.reciprocal
    keeps: ClassVar[str] = "y"

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.square(y, out=gx)
        np.negative(gx, out=gx)
        gx *= gy


@frozen
class Exp(Unary, Op):
    of = np.exp
    keeps: ClassVar[str] = "y"

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.multiply(gy, y, out=gx)


@frozen
class Expm1(Unary, Op):
    of = np.expm1

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.exp(x, out=gx)  # y + 1 would lose the digits of a small slope
        gx *= gy


@frozen
class Log(Unary, Op):
    of = np.log

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.divide(gy, x, out=gx)


@frozen
class Log1p(Unary, Op):
    of = np.log1p

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.add(x, 1, out=gx)
        np.divide(gy, gx, out=gx)


@frozen
class Log2(Unary, Op):
    of = np.log2

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.multiply(x, math.log(2), out=gx)
        np.divide(gy, gx, out=gx)


@frozen
class Sin(Unary, Op):
    of = np.sin

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.cos(x, out=gx)
        gx *= gy


@frozen
class Cos(Unary, Op):
    of = np.cos

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.sin(x, out=gx)
        np.negative(gx, out=gx)
        gx *= gy


@unary
def neg(x: Operand) -> Tensor:
    """The number with the opposite sign, `-x`.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64 or integers.

    Raises
    ------
    DtypeError
        `x` does not hold numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (-tg.Tensor([1.0, -2.0])).value
    array([-1.,  2.], dtype=float32)
    """
    return Neg()(x)


@unary
def abs(x: Operand) -> Tensor:
    """The absolute value, `abs(x)`.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bool.

    Returns
    -------
    Tensor
        ... The derivative at 0 is taken as 0.

    Raises
    ------
    DtypeError
        `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> abs(tg.Tensor([1.0, -2.0])).value
    array([1., 2.], dtype=float32)
    """
    return Abs()(x)


@unary
def square(x: Operand) -> Tensor:
    """The square, `x * x`.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64 or integers.

    Raises
    ------
    DtypeError
        `x` does not hold numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.square([1.0, -3.0]).value
    array([1., 9.], dtype=float32)
    """
    return Square()(x)


@float_unary
def sqrt(x: Operand) -> Tensor:
    """The square root; NaN below 0.

    Returns
    -------
    Tensor
        ... The derivative at 0 is infinite.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sqrt([4.0, 9.0]).value
    array([2., 3.], dtype=float32)
    """
    return Sqrt()(floats(x))


@float_unary
def rsqrt(x: Operand) -> Tensor:
    """One over the square root; infinite at 0, NaN below.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.rsqrt([4.0, 0.25]).value
    array([0.5, 2. ], dtype=float32)
    """
    return Rsqrt()(floats(x))


@float_unary
def reciprocal(x: Operand) -> Tensor:
    """One over the number; infinite at 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.reciprocal([2.0, -4.0]).value
    array([ 0.5 , -0.25], dtype=float32)
    """
    return Reciprocal()(floats(x))


@float_unary
def exp(x: Operand) -> Tensor:
    """The exponential, e to the power of x.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.exp([0.0, 1.0]).value.round(4)
    array([1.    , 2.7183], dtype=float32)
    """
    return Exp()(floats(x))


@float_unary
def expm1(x: Operand) -> Tensor:
    """The exponential less 1, with all digits of small numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.expm1([0.0, 1e-10]).value
    array([0.e+00, 1.e-10], dtype=float32)
    """
    return Expm1()(floats(x))


@float_unary
def log(x: Operand) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log([1.0, 0.0]).value
    array([  0., -inf], dtype=float32)
    """
    return Log()(floats(x))


@float_unary
def log1p(x: Operand) -> Tensor:
    """The natural logarithm of 1 + x, with all digits of small numbers; NaN below -1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log1p([0.0, 1e-10]).value
    array([0.e+00, 1.e-10], dtype=float32)
    """
    return Log1p()(floats(x))


@float_unary
def log2(x: Operand) -> Tensor:
    """The logarithm to the base 2; -inf at 0, NaN below.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log2([1.0, 8.0]).value
    array([0., 3.], dtype=float32)
    """
    return Log2()(floats(x))


@float_unary
def sin(x: Operand) -> Tensor:
    """The sine of an angle in radians.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sin([0.0, 1.0]).value.round(4)
    array([0.    , 0.8415], dtype=float32)
    """
    return Sin()(floats(x))


@float_unary
def cos(x: Operand) -> Tensor:
    """The cosine of an angle in radians.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.cos([0.0, 1.0]).value.round(4)
    array([1.    , 0.5403], dtype=float32)
    """
    return Cos()(floats(x))
