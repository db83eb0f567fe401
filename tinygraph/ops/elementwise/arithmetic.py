"""Arithmetic on two operands: add, sub, mul, div, pow, maximum, minimum.

The operands are broadcast together; each gradient is then summed over the axes along which its
operand was repeated (`unbroadcast`).

    add      z = x + y      gx = gz                         gy = gz
    sub      z = x - y      gx = gz                         gy = -gz
    mul      z = x * y      gx = gz * y                     gy = gz * x
    div      z = x / y      gx = gz / y                     gy = -gx * z
    pow      z = x ** y     gx = gz * y * x ** (y - 1)      gy = gz * z * log(x)
                            0 where y = 0                   0 where x = 0 and y >= 0
    maximum  z = x where x >= y, else y                     the whole gradient goes to the operand
    minimum  z = x where x <= y, else y                     that was chosen; NaN is chosen first
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Device, Gradients, Needs, Op, Operand, Shape, Tensor
from tinygraph.engine.memory import Memory, eager_memory
from tinygraph.ops.common import documented, for_each_broadcast, sum_broadcast, sum_to
from tinygraph.ops.common.operands import (
    FLOATS,
    NUMBERS,
    Broadcasting,
    joint_shape,
    promote,
    select,
    unbroadcast,
)

Terms = tuple["Array | None", "Array | None"]
Slopes = tuple[tuple[str, str], tuple[str, str]]


class Arithmetic(Broadcasting):
    """Mixed into the ops below: broadcast, then a ufunc; backward, terms, then sums of them.

    Attributes
    ----------
    function
        function(x, y, out=z), for most a ufunc.
    slopes
        For each operand the functor of arithmetic.cu that makes the terms of its gradient ("" for
        gz itself), and what terms read, in numpy too: letters of x, y, z.
    """

    function: ClassVar[Any]
    slopes: ClassVar[Slopes] = ("", ""), ("", "")

    def terms(self, mem: Memory, gz: Array, kept: Any, needs: Needs) -> Terms:
        """The gradients before their sums; `kept` is x, y, z, as far as `slopes` names them."""
        return gz, gz

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        self.function(x, y, out=z)
        return z, self._kept(mem, x, y, z)

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: Needs) -> Gradients:
        x_shape, y_shape, kept = saved
        gx, gy = self.terms(mem, gz, kept, needs)
        return (
            unbroadcast(mem, gx, x_shape) if needs[0] and gx is not None else None,
            unbroadcast(mem, gy, y_shape) if needs[1] and gy is not None else None,
        )

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = self.launch(mem, x, y)
        return z, self._kept(mem, x, y, z)

    def backward_kernel(self, mem: Memory, gz: Array, saved: Any, needs: Needs) -> Gradients:
        *shapes, kept = saved
        return tuple(
            [
                _summed(mem, gz, slope, kept, shape) if needed else None
                for slope, shape, needed in zip(self.slopes, shapes, needs, strict=True)
            ]
        )

    def launch(self, mem: Memory, x: Array, y: Array) -> Array:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        kernel = op_kernel("arithmetic", "binary_forward", x.dtype, type(self).__name__)
        for_each_broadcast(mem, kernel, z, x, y)
        return z

    def _kept(self, mem: Memory, x: Array, y: Array, z: Array) -> Any:
        if True not in mem.needs:
            return None
        (_, for_gx), (_, for_gy) = self.slopes
        x_needs, y_needs = mem.needs
        read = (for_gx if x_needs else "") + (for_gy if y_needs else "")
        if not read:
            return x.shape, y.shape, (None, None, None)
        kept = (
            x if "x" in read else None,
            y if "y" in read else None,
            z if "z" in read else None,
        )
        return x.shape, y.shape, kept


def _summed(mem: Memory, gz: Array, slope: tuple[str, str], kept: Any, shape: Shape) -> Array:
    """The gradient of an operand: terms of each element, summed where it was repeated."""
    functor, letters = slope
    if not functor:
        return sum_to(mem, gz, shape)
    kernel = op_kernel("arithmetic", "binary_backward", gz.dtype, functor)
    a, b = (*[kept["xyz".index(letter)] for letter in letters], None, None)[:2]
    return sum_broadcast(mem, kernel, shape, gz, a, b)


@frozen
class Add(Arithmetic, Op):
    function: ClassVar[Any] = np.add


@frozen
class Sub(Arithmetic, Op):
    takes: ClassVar[str] = NUMBERS
    function: ClassVar[Any] = np.subtract
    slopes: ClassVar[Slopes] = ("", ""), ("Negative", "")

    def terms(self, mem: Memory, gz: Array, kept: Any, needs: Needs) -> Terms:
        return gz, np.negative(gz, out=mem.empty(gz.shape, gz.dtype)) if needs[1] else None


@frozen
class Mul(Arithmetic, Op):
    function: ClassVar[Any] = np.multiply
    slopes: ClassVar[Slopes] = ("Product", "y"), ("Product", "x")

    def terms(self, mem: Memory, gz: Array, kept: Any, needs: Needs) -> Terms:
        x, y, _ = kept
        return (
            np.multiply(gz, y, out=mem.empty(gz.shape, gz.dtype)) if needs[0] else None,
            np.multiply(gz, x, out=mem.empty(gz.shape, gz.dtype)) if needs[1] else None,
        )


@frozen
class Div(Arithmetic, Op):
    takes: ClassVar[str] = FLOATS
    function: ClassVar[Any] = np.divide
    slopes: ClassVar[Slopes] = ("Quotient", "y"), ("SlopeOfDivisor", "yz")

    def terms(self, mem: Memory, gz: Array, kept: Any, needs: Needs) -> Terms:
        _, y, z = kept
        gx = np.divide(gz, y, out=mem.empty(gz.shape, gz.dtype))
        if not needs[1]:
            return gx, None
        gy = np.multiply(gx, z, out=mem.empty(gz.shape, gz.dtype))
        return gx, np.negative(gy, out=gy)


def _power(x: Array, y: Array, out: Array) -> None:
    """out = x ** y; a single exponent of 2 or 1, where np.power would be slow, is written out."""
    exponent = y.item() if y.size == 1 else None
    if exponent == 2:
        np.square(x, out=out)
    elif exponent == 1:
        np.copyto(out, x)
    else:
        np.power(x, y, out=out)


@frozen
class Pow(Arithmetic, Op):
    takes: ClassVar[str] = NUMBERS
    function: ClassVar[Any] = staticmethod(_power)
    slopes: ClassVar[Slopes] = ("SlopeOfBase", "xy"), ("SlopeOfExponent", "xz")

    def check(self, x: Array, y: Array) -> None:
        if y.dtype.kind == "i" and (y < 0).any():
            expected = "exponents of 0 or more, for integers have no fractions"
            way_out = "make x floating: x.astype('float64')"
            raise ArgumentError(self.name, "y", expected, f"{y.min()}", way_out)

    def terms(self, mem: Memory, gz: Array, kept: Any, needs: Needs) -> Terms:
        x, y, z = kept
        return (
            self._term_of_base(mem, gz, x, y) if needs[0] else None,
            self._term_of_exponent(mem, gz, x, z) if needs[1] else None,
        )

    def _term_of_base(self, mem: Memory, gz: Array, x: Array, y: Array) -> Array:
        gx = mem.empty(gz.shape, gz.dtype)
        _power(x, np.subtract(y, 1, out=mem.empty(y.shape, y.dtype)), gx)
        gx *= y
        zero = np.equal(y, 0, out=mem.empty(y.shape, bool))
        if zero.any():  # 0 * 0 ** -1 would be NaN
            np.copyto(gx, 0, where=zero)
        gx *= gz
        return gx

    def _term_of_exponent(self, mem: Memory, gz: Array, x: Array, z: Array) -> Array:
        log_x = np.log(x, out=mem.empty(x.shape, x.dtype))
        gy = np.multiply(z, log_x, out=mem.empty(gz.shape, gz.dtype))
        zero = np.equal(x, 0, out=mem.empty(x.shape, bool))
        if zero.any():  # 0 * log(0) would be NaN; below y = 0 z is infinite
            np.copyto(gy, 0, where=zero & np.isfinite(z))
        gy *= gz
        return gy


@frozen
class Maximum(Arithmetic, Op):
    function: ClassVar[Any] = np.maximum
    wins: ClassVar[Any] = np.greater_equal  # equal operands: the first one
    slopes: ClassVar[Slopes] = ("First<Maximum>", "xy"), ("Second<Maximum>", "xy")

    def terms(self, mem: Memory, gz: Array, kept: Any, needs: Needs) -> Terms:
        x, y, _ = kept
        first = self.wins(x, y, out=mem.empty(gz.shape, bool))
        first |= np.not_equal(x, x, out=mem.empty(x.shape, bool))  # a NaN in x is the maximum
        gx = select(mem, gz, first) if needs[0] else None
        return gx, select(mem, gz, np.logical_not(first, out=first)) if needs[1] else None


@frozen
class Minimum(Maximum):
    function: ClassVar[Any] = np.minimum
    wins: ClassVar[Any] = np.less_equal
    slopes: ClassVar[Slopes] = ("First<Minimum>", "xy"), ("Second<Minimum>", "xy")


def add_arrays(mem: Memory, x: Array, y: Array) -> Array:
    """x + y by the kernel, without a node."""
    return _ADD.launch(mem, x, y)


def times(device: Device, array: Array, number: float) -> Array:
    """array * number, as the array's dtype has it, without a node."""
    if device.on_host:
        return np.asarray(array * array.dtype.type(number))
    factor = device.constant(np.array([number], array.dtype))
    return Mul().launch(eager_memory((False, False), device), array, factor).reshape(array.shape)


_ADD, _SUB, _MUL, _DIV, _POW = Add(), Sub(), Mul(), Div(), Pow()
_MAXIMUM, _MINIMUM = Maximum(), Minimum()

_arithmetic = documented(
    """
    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in PyTorch (`tg.result_type`).

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        Both are floats of 16 bits.
    """
)


@_arithmetic
def add(x: Operand, y: Operand) -> Tensor:
    """The sum `x + y`, element by element; `x or y` for bools.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([1.0, 2.0]) + 10).value
    array([11., 12.], dtype=float32)
    """
    return _ADD(*promote("add", x, y))


@_arithmetic
def sub(x: Operand, y: Operand) -> Tensor:
    """The difference `x - y`, element by element.

    Raises
    ------
    DtypeError
        Both are bools, or floats of 16 bits.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (1 - tg.Tensor([1.0, 2.0])).value
    array([ 0., -1.], dtype=float32)
    """
    return _SUB(*promote("sub", x, y))


@_arithmetic
def mul(x: Operand, y: Operand) -> Tensor:
    """The product `x * y`, element by element; `x and y` for bools.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([[1.0], [2.0]]) * [3.0, 4.0]).value
    array([[3., 4.],
           [6., 8.]], dtype=float32)
    """
    return _MUL(*promote("mul", x, y))


@_arithmetic
def div(x: Operand, y: Operand) -> Tensor:
    """The quotient `x / y`, element by element; of integers too it is a float.

    Returns
    -------
    Tensor
        The broadcast shape; float32 where neither is a float.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (1 / tg.Tensor([2.0, 4.0])).value
    array([0.5 , 0.25], dtype=float32)
    """
    return _DIV(*promote("div", x, y, to_float=True))


@_arithmetic
def pow(x: Operand, y: Operand) -> Tensor:
    """The power `x ** y`, element by element.

    Returns
    -------
    Tensor
        ... A negative float to a fraction is NaN; the gradient by `x` is 0 where y = 0, and the one
        by `y` is 0 where x = 0 and y >= 0.

    Raises
    ------
    DtypeError
        Both are bools, or floats of 16 bits.
    ArgumentError
        Integers to a negative power.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([1.0, 2.0, 3.0]) ** 2).value
    array([1., 4., 9.], dtype=float32)
    """
    return _POW(*promote("pow", x, y))


@_arithmetic
def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger of x and y, element by element; NaN where one of them is NaN.

    Returns
    -------
    Tensor
        ... Where x = y the whole gradient goes to `x`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.maximum([1.0, 5.0], 2.0).value
    array([2., 5.], dtype=float32)
    """
    return _MAXIMUM(*promote("maximum", x, y))


@_arithmetic
def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller of x and y, element by element; NaN where one of them is NaN.

    Returns
    -------
    Tensor
        ... Where x = y the whole gradient goes to `x`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.minimum([1.0, 5.0], 2.0).value
    array([1., 2.], dtype=float32)
    """
    return _MINIMUM(*promote("minimum", x, y))
