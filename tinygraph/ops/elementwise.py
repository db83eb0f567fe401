"""Functions of one number, element by element: neg, abs, exp, log, sqrt.

    neg   y = -x         gx = -gy
    abs   y = |x|        gx = gy * sign(x)          (0 at 0)
    exp   y = e ** x     gx = gy * y
    log   y = ln(x)      gx = gy / x                (x = 0 gives -inf, x < 0 gives NaN)
    sqrt  y = x ** 1/2   gx = gy / (2 * y)          (x < 0 gives NaN)

Infinities and NaN come out as in numpy.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Op
from tinygraph.ops.shared.operands import ALL, NUMBERS
from tinygraph.ops.shared.unary import Unary, unary
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor


@frozen
class Neg(Unary, Op):
    takes: ClassVar[str] = NUMBERS
    keeps: ClassVar[None] = None

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.negative(x, out=y)

    def gradient(self, mem: Memory, gy: Array, kept: Any, gx: Array) -> None:
        np.negative(gy, out=gx)


@frozen
class Abs(Unary, Op):
    takes: ClassVar[str] = ALL

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.absolute(x, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.sign(x, out=gx)
        gx *= gy


@frozen
class Exp(Unary, Op):
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.exp(x, out=y)

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.multiply(gy, y, out=gx)


@frozen
class Log(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.log(x, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.divide(gy, x, out=gx)


@frozen
class Sqrt(Unary, Op):
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.sqrt(x, out=y)

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.divide(gy, y, out=gx)
        gx /= 2


_NEG, _ABS, _EXP, _LOG, _SQRT = Neg(), Abs(), Exp(), Log(), Sqrt()


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
    return _NEG(x)


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
    return _ABS(x)


@unary
def exp(x: Operand) -> Tensor:
    """The exponential, e to the power of x.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.exp([0.0, 1.0]).value.round(4)
    array([1.    , 2.7183], dtype=float32)
    """
    return _EXP(x)


@unary
def log(x: Operand) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log([1.0, 0.0]).value
    array([  0., -inf], dtype=float32)
    """
    return _LOG(x)


@unary
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
    return _SQRT(x)
