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
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.broadcast import typed_kernel
from tinygraph.ops.shared.launch import for_each
from tinygraph.ops.shared.operands import ALL, FLOATS, NUMBERS, require_one_dtype
from tinygraph.shapes import Array, Spec
from tinygraph.tensor import Operand, Tensor


class _Elementwise:
    """Mixed into the ops below: the output is like the input, sample by sample."""

    name: ClassVar[str]
    takes: ClassVar[str] = FLOATS
    keeps_output: ClassVar[bool] = False  # whether the slope is read off y, and not off x

    def infer(self, x: Spec) -> Spec:
        require_one_dtype(self.name, self.takes, x=x)
        return x

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        kernel = typed_kernel("elementwise", "unary_forward", x.dtype, type(self).__name__)
        for_each(kernel, x.size, x, y, x.size)
        return y, (y if self.keeps_output else x) if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        kernel = typed_kernel("elementwise", "unary_backward", gy.dtype, type(self).__name__)
        for_each(kernel, gy.size, gy, saved, gx, gy.size)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


@frozen
class Neg(_Elementwise, Op):
    takes: ClassVar[str] = NUMBERS

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return np.negative(x, out=mem.empty(x.shape, x.dtype)), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        return (np.negative(gy, out=mem.empty(gy.shape, gy.dtype)),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return super().forward_kernel(mem, x)[0], None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        return (super().forward_kernel(mem, gy)[0],)  # the slope is the op itself


@frozen
class Abs(_Elementwise, Op):
    takes: ClassVar[str] = ALL

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.absolute(x, out=mem.empty(x.shape, x.dtype))
        return y, x if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, x: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = np.sign(x, out=mem.empty(x.shape, x.dtype))
        gx *= gy
        return (gx,)


@frozen
class Exp(_Elementwise, Op):
    keeps_output: ClassVar[bool] = True

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.exp(x, out=mem.empty(x.shape, x.dtype))
        return y, y if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        return (np.multiply(gy, y, out=mem.empty(y.shape, y.dtype)),)


@frozen
class Log(_Elementwise, Op):
    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.log(x, out=mem.empty(x.shape, x.dtype))
        return y, x if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, x: Array, needs: tuple[bool, ...]) -> Gradients:
        return (np.divide(gy, x, out=mem.empty(x.shape, x.dtype)),)


@frozen
class Sqrt(_Elementwise, Op):
    keeps_output: ClassVar[bool] = True

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.sqrt(x, out=mem.empty(x.shape, x.dtype))
        return y, y if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = np.divide(gy, y, out=mem.empty(y.shape, y.dtype))
        gx /= 2
        return (gx,)


_NEG, _ABS, _EXP, _LOG, _SQRT = Neg(), Abs(), Exp(), Log(), Sqrt()


def neg(x: Operand) -> Tensor:
    """The number with the opposite sign, `-x`.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64 or integers.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    DtypeError
        `x` is of another dtype, bool for one.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (-tg.Tensor([1.0, -2.0])).value
    array([-1.,  2.], dtype=float32)
    """
    return _NEG(x)


def abs(x: Operand) -> Tensor:
    """The absolute value, `abs(x)`.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bool.

    Returns
    -------
    Tensor
        Same shape and dtype.  The derivative at 0 is taken as 0.

    Raises
    ------
    DtypeError
        `x` is of another dtype.

    Examples
    --------
    >>> import tinygraph as tg
    >>> abs(tg.Tensor([1.0, -2.0])).value
    array([1., 2.], dtype=float32)
    """
    return _ABS(x)


def exp(x: Operand) -> Tensor:
    """The exponential, e to the power of x.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    DtypeError
        `x` is of another dtype, integers for one.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.exp([0.0, 1.0]).value.round(4)
    array([1.    , 2.7183], dtype=float32)
    """
    return _EXP(x)


def log(x: Operand) -> Tensor:
    """The natural logarithm; -inf at 0, NaN below.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    DtypeError
        `x` is of another dtype, integers for one.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log([1.0, 0.0]).value
    array([  0., -inf], dtype=float32)
    """
    return _LOG(x)


def sqrt(x: Operand) -> Tensor:
    """The square root; NaN below 0.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.

    Returns
    -------
    Tensor
        Same shape and dtype.  The derivative at 0 is infinite.

    Raises
    ------
    DtypeError
        `x` is of another dtype, integers for one.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sqrt([4.0, 9.0]).value
    array([2., 3.], dtype=float32)
    """
    return _SQRT(x)
