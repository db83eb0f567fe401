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

from tinygraph.errors import ArgumentError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.broadcast import for_each_broadcast, sum_broadcast, sum_to, typed_kernel
from tinygraph.ops.shared.operands import (
    FLOATS,
    NUMBERS,
    Broadcasting,
    joint_shape,
    promote,
    select,
    unbroadcast,
)
from tinygraph.shapes import Array, Shape
from tinygraph.tensor import Operand, Tensor


class Arithmetic(Broadcasting):
    """Mixed into the ops below: how their kernels are launched."""

    def launch(self, mem: Memory, x: Array, y: Array) -> Array:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        kernel = typed_kernel("arithmetic", "binary_forward", x.dtype, type(self).__name__)
        for_each_broadcast(mem, kernel, z, x, y)
        return z


def _summed(
    mem: Memory, slope: str, shape: Shape, gz: Array, a: Array | None = None, b: Array | None = None
) -> Array:
    """The gradient of an operand: slope(gz, a, b) of each element, summed where it was repeated."""
    kernel = typed_kernel("arithmetic", "binary_backward", gz.dtype, slope)
    return sum_broadcast(mem, kernel, shape, gz, a, b)


@frozen
class Add(Arithmetic, Op):
    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        np.add(x, y, out=z)
        return z, (x.shape, y.shape)

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x_shape, y_shape = saved
        gx = unbroadcast(mem, gz, x_shape) if needs[0] else None
        gy = unbroadcast(mem, gz, y_shape) if needs[1] else None
        return gx, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self.launch(mem, x, y), (x.shape, y.shape)

    def backward_kernel(
        self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        gx, gy = (
            sum_to(mem, gz, shape) if needed else None
            for shape, needed in zip(saved, needs, strict=True)
        )
        return gx, gy


@frozen
class Sub(Arithmetic, Op):
    takes: ClassVar[str] = NUMBERS

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        np.subtract(x, y, out=z)
        return z, (x.shape, y.shape)

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x_shape, y_shape = saved
        gx = unbroadcast(mem, gz, x_shape) if needs[0] else None
        gy = None
        if needs[1]:
            gy = np.negative(unbroadcast(mem, gz, y_shape), out=mem.empty(y_shape, gz.dtype))
        return gx, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self.launch(mem, x, y), (x.shape, y.shape)

    def backward_kernel(
        self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x_shape, y_shape = saved
        gx = sum_to(mem, gz, x_shape) if needs[0] else None
        gy = _summed(mem, "Negative", y_shape, gz) if needs[1] else None
        return gx, gy


@frozen
class Mul(Arithmetic, Op):
    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        np.multiply(x, y, out=z)
        x_needs, y_needs = mem.needs
        return z, (x.shape, y.shape, x if y_needs else None, y if x_needs else None)

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x_shape, y_shape, x, y = saved
        gx = gy = None
        if needs[0]:
            gx = np.multiply(gz, y, out=mem.empty(gz.shape, gz.dtype))
            gx = unbroadcast(mem, gx, x_shape)
        if needs[1]:
            gy = np.multiply(gz, x, out=mem.empty(gz.shape, gz.dtype))
            gy = unbroadcast(mem, gy, y_shape)
        return gx, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        x_needs, y_needs = mem.needs
        saved = (x.shape, y.shape, x if y_needs else None, y if x_needs else None)
        return self.launch(mem, x, y), saved

    def backward_kernel(
        self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x_shape, y_shape, x, y = saved
        gx = _summed(mem, "Product", x_shape, gz, y) if needs[0] else None
        gy = _summed(mem, "Product", y_shape, gz, x) if needs[1] else None
        return gx, gy


@frozen
class Div(Arithmetic, Op):
    takes: ClassVar[str] = FLOATS

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        np.divide(x, y, out=z)
        return z, (x.shape, y, z) if True in mem.needs else None

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x_shape, y, z = saved
        each = np.divide(gz, y, out=mem.empty(gz.shape, gz.dtype))
        gx = unbroadcast(mem, each, x_shape) if needs[0] else None
        gy = None
        if needs[1]:
            product = np.multiply(each, z, out=mem.empty(gz.shape, gz.dtype))
            gy = unbroadcast(mem, np.negative(product, out=product), y.shape)
        return gx, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = self.launch(mem, x, y)
        return z, (x.shape, y, z) if True in mem.needs else None

    def backward_kernel(
        self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x_shape, y, z = saved
        gx = _summed(mem, "Quotient", x_shape, gz, y) if needs[0] else None
        gy = _summed(mem, "SlopeOfDivisor", y.shape, gz, y, z) if needs[1] else None
        return gx, gy


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

    def check(self, x: Array, y: Array) -> None:
        if y.dtype.kind == "i" and (y < 0).any():
            raise ArgumentError(
                self.name,
                "y",
                "exponents of 0 or more, for integers have no fractions",
                f"{y.min()}",
                "make x floating: x.astype('float64')",
            )

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        _power(x, y, z)
        return z, (x, y, z if mem.needs[1] else None) if True in mem.needs else None

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x, y, z = saved
        gx = gy = None
        if needs[0]:
            gx = mem.empty(gz.shape, gz.dtype)
            _power(x, np.subtract(y, 1, out=mem.empty(y.shape, y.dtype)), gx)
            gx *= y
            zero = np.equal(y, 0, out=mem.empty(y.shape, bool))
            if zero.any():  # 0 * 0 ** -1 would be NaN
                np.copyto(gx, 0, where=zero)
            gx = unbroadcast(mem, np.multiply(gx, gz, out=gx), x.shape)
        if needs[1]:
            log_x = np.log(x, out=mem.empty(x.shape, x.dtype))
            gy = np.multiply(z, log_x, out=mem.empty(gz.shape, gz.dtype))
            zero = np.equal(x, 0, out=mem.empty(x.shape, bool))
            if zero.any():  # 0 * log(0) would be NaN
                np.copyto(gy, 0, where=zero & (y >= 0))
            gy = unbroadcast(mem, np.multiply(gy, gz, out=gy), y.shape)
        return gx, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = self.launch(mem, x, y)
        return z, (x, y, z if mem.needs[1] else None) if True in mem.needs else None

    def backward_kernel(
        self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x, y, z = saved
        gx = _summed(mem, "SlopeOfBase", x.shape, gz, x, y) if needs[0] else None
        gy = _summed(mem, "SlopeOfExponent", y.shape, gz, x, z) if needs[1] else None
        return gx, gy


@frozen
class Maximum(Arithmetic, Op):
    larger: ClassVar[Any] = np.maximum
    wins: ClassVar[Any] = np.greater_equal  # equal operands: the first one

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        self.larger(x, y, out=z)
        return z, (x, y) if True in mem.needs else None

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x, y = saved
        first = self.wins(x, y, out=mem.empty(gz.shape, bool))
        first |= np.not_equal(x, x, out=mem.empty(x.shape, bool))  # a NaN in x is the maximum
        gx = unbroadcast(mem, select(mem, gz, first), x.shape) if needs[0] else None
        gy = None
        if needs[1]:
            gy = unbroadcast(mem, select(mem, gz, np.logical_not(first, out=first)), y.shape)
        return gx, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self.launch(mem, x, y), (x, y) if True in mem.needs else None

    def backward_kernel(
        self, mem: Memory, gz: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x, y = saved
        choice = type(self).__name__
        gx = _summed(mem, f"First<{choice}>", x.shape, gz, x, y) if needs[0] else None
        gy = _summed(mem, f"Second<{choice}>", y.shape, gz, x, y) if needs[1] else None
        return gx, gy


@frozen
class Minimum(Maximum):
    larger: ClassVar[Any] = np.minimum
    wins: ClassVar[Any] = np.less_equal


_ADD, _SUB, _MUL, _DIV, _POW = Add(), Sub(), Mul(), Div(), Pow()
_MAXIMUM, _MINIMUM = Maximum(), Minimum()


def add(x: Operand, y: Operand) -> Tensor:
    """The sum `x + y`, element by element; `x or y` for bools.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

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

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([1.0, 2.0]) + 10).value
    array([11., 12.], dtype=float32)
    """
    return _ADD(*promote("add", x, y))


def sub(x: Operand, y: Operand) -> Tensor:
    """The difference `x - y`, element by element.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        Both are bools, or floats of 16 bits.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (1 - tg.Tensor([1.0, 2.0])).value
    array([ 0., -1.], dtype=float32)
    """
    return _SUB(*promote("sub", x, y))


def mul(x: Operand, y: Operand) -> Tensor:
    """The product `x * y`, element by element; `x and y` for bools.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

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

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([[1.0], [2.0]]) * [3.0, 4.0]).value
    array([[3., 4.],
           [6., 8.]], dtype=float32)
    """
    return _MUL(*promote("mul", x, y))


def div(x: Operand, y: Operand) -> Tensor:
    """The quotient `x / y`, element by element; of integers too it is a float.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

    Returns
    -------
    Tensor
        The broadcast shape; float64 where neither is a float.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        Both are floats of 16 bits.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (1 / tg.Tensor([2.0, 4.0])).value
    array([0.5 , 0.25], dtype=float32)
    """
    return _DIV(*promote("div", x, y, to_float=True))


def pow(x: Operand, y: Operand) -> Tensor:
    """The power `x ** y`, element by element.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype.  A negative float to a fraction is NaN; the
        gradient by `x` is 0 where y = 0, and the one by `y` is 0 where x = 0 and y >= 0.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
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


def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger of x and y, element by element; NaN where one of them is NaN.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype.  Where x = y the whole gradient goes to `x`.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        Both are floats of 16 bits.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.maximum([1.0, 5.0], 2.0).value
    array([2., 5.], dtype=float32)
    """
    return _MAXIMUM(*promote("maximum", x, y))


def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller of x and y, element by element; NaN where one of them is NaN.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in numpy, Python numbers do not promote.

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype.  Where x = y the whole gradient goes to `x`.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        Both are floats of 16 bits.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.minimum([1.0, 5.0], 2.0).value
    array([1., 2.], dtype=float32)
    """
    return _MINIMUM(*promote("minimum", x, y))
