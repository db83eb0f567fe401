"""Comparisons of two operands: less, less_equal, greater, greater_equal, equal, not_equal.

    z = x < y,  x <= y,  x > y,  x >= y,  x == y,  x != y

The operands are broadcast together and brought to one dtype; the result is bool, without a
derivative.  A comparison with NaN is false, but for not_equal, where it is true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Op, Operand, Spec, Tensor
from tinygraph.ops.common import Broadcasting, for_each_broadcast, joint_shape, promote

_BOOL = np.dtype(bool)


class _Comparison(Broadcasting):
    """Mixed into the ops below, which differ in one function."""

    compare: ClassVar[Any]

    def infer(self, x: Spec, y: Spec) -> Spec:
        return Spec(super().infer(x, y).shape, _BOOL)

    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), _BOOL)
        self.compare(x, y, out=z)
        return z, None

    def forward_kernel(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        z = mem.empty(joint_shape(self.name, x.shape, y.shape), _BOOL)
        kernel = op_kernel("comparison", "compare", x.dtype, type(self).__name__)
        for_each_broadcast(mem, kernel, z, x, y)
        return z, None


@frozen
class Less(_Comparison, Op):
    compare = np.less


@frozen
class LessEqual(_Comparison, Op):
    compare = np.less_equal


@frozen
class Greater(_Comparison, Op):
    compare = np.greater


@frozen
class GreaterEqual(_Comparison, Op):
    compare = np.greater_equal


@frozen
class Equal(_Comparison, Op):
    compare = np.equal


@frozen
class NotEqual(_Comparison, Op):
    compare = np.not_equal


def _function(op: Op, sign: str, of_1_2_3_and_2: str) -> Callable[[Operand, Operand], Tensor]:
    """The public function of a comparison."""

    def compare(x: Operand, y: Operand) -> Tensor:
        return op(*promote(op.name, x, y))

    compare.__name__ = compare.__qualname__ = op.name
    compare.__doc__ = f"""Whether `x {sign} y`, element by element.

    Parameters
    ----------
    x, y : Tensor or number
        Shapes that broadcast together; dtypes promote as in PyTorch (`tg.result_type`).

    Returns
    -------
    Tensor
        The broadcast shape; bool, without a gradient.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        An operand does not hold numbers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> (tg.Tensor([1.0, 2.0, 3.0]) {sign} 2).value
    array({of_1_2_3_and_2})
    """
    return compare


less = _function(Less(), "<", "[ True, False, False]")
less_equal = _function(LessEqual(), "<=", "[ True,  True, False]")
greater = _function(Greater(), ">", "[False, False,  True]")
greater_equal = _function(GreaterEqual(), ">=", "[False,  True,  True]")
equal = _function(Equal(), "==", "[False,  True, False]")
not_equal = _function(NotEqual(), "!=", "[ True, False,  True]")
