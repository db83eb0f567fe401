"""Division without a fraction: floor_divide and remainder, which has the sign of the divisor.

    q = floor(x / y)          floor_divide, without a derivative: it is 0 almost everywhere
    r = x - y * q             remainder       gx = gr        gy = -gr * q

As in Python and PyTorch: -7 // 2 is -4 and -7 % 2 is 1.  Of floats q is that of the exact quotient,
and division by 0 gives infinity and NaN; of integers it is refused.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Tensor
from tinygraph.ops.common import documented, for_each_broadcast, sum_broadcast, sum_to
from tinygraph.ops.common.operands import NUMBERS, Broadcasting, joint_shape, promote, unbroadcast


class Division(Broadcasting):
    """Mixed into the ops below: integers by 0 are refused, on a GPU they are 0."""

    takes: ClassVar[str] = NUMBERS
    name: ClassVar[str]

    def check(self, x: Array, y: Array) -> None:
        if y.dtype.kind != "f" and y.size and not y.all():
            raise ArgumentError(self.name, "y", "integers that are not 0", "0", "x.float()")

    def launch(self, mem: Memory, functor: str, x: Array, y: Array) -> Array:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        for_each_broadcast(mem, op_kernel("floor_divide", "whole", x.dtype, functor), z, x, y)
        return z


@frozen
class FloorDivide(Division, Op):
    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        return np.floor_divide(x, y, out=z), None

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self.launch(mem, "FloorDivide", x, y), None


@frozen
class Remainder(Division, Op):
    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), x.dtype)
        return np.remainder(x, y, out=z), (x, y)

    def backward(self, mem: Memory, gz: Array, saved: Any, needs: Needs) -> Gradients:
        x, y = saved
        gy = None
        if needs[1]:
            terms = np.floor_divide(x, y, out=mem.empty(gz.shape, gz.dtype))
            terms *= gz
            gy = unbroadcast(mem, np.negative(terms, out=terms), y.shape)
        return unbroadcast(mem, gz, x.shape) if needs[0] else None, gy

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        return self.launch(mem, "Remainder", x, y), (x, y)

    def backward_kernel(self, mem: Memory, gz: Array, saved: Any, needs: Needs) -> Gradients:
        x, y = saved
        gy = None
        if needs[1]:
            slope = self.launch(mem, "MinusQuotient", x, y)
            product = op_kernel("arithmetic", "binary_backward", gz.dtype, "Product")
            gy = sum_broadcast(mem, product, y.shape, gz, slope, None)
        return sum_to(mem, gz, x.shape) if needs[0] else None, gy


_division = documented(
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
        Both are bools, or floats of 16 bits.
    ArgumentError
        An integer is divided by 0.
    """
)
_FLOOR_DIVIDE, _REMAINDER = FloorDivide(), Remainder()


@_division
def floor_divide(x: Operand, y: Operand) -> Tensor:
    """The largest whole number that is not above `x / y`, `x // y`; without a gradient.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.tensor([7, -7]) // 2).value
    array([ 3, -4])
    """
    return _FLOOR_DIVIDE(*promote("floor_divide", x, y))


@_division
def remainder(x: Operand, y: Operand) -> Tensor:
    """What `x // y` leaves over, `x % y`: from 0 up to y, or down to a y below 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([7.5, -7.5]) % 2).value
    array([1.5, 0.5], dtype=float32)
    """
    return _REMAINDER(*promote("remainder", x, y))
