"""where: a choice between two operands, element by element.

    y  = a where the condition holds, else b
    ga = gy where it holds, else 0          gb = gy where it does not hold, else 0

The gradients are selected, not multiplied with 0 and 1: 0 * NaN would be NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import DtypeError, frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Operand, Spec, Tensor, as_tensor, broadcast_shapes
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import (
    ALL,
    as_bits,
    broadcast_claim,
    choose,
    device_of,
    plain,
    promote,
    require_one_dtype,
    select,
    unbroadcast,
)
from tinygraph.ops.common.broadcast import for_each_broadcast, sum_broadcast


@frozen
class Where(Op):
    def infer(self, condition: Spec, a: Spec, b: Spec) -> Spec:
        if condition.dtype != np.dtype(bool):
            way_out = "compare, for example condition != 0"
            raise DtypeError(self.name, "condition", "bool", condition.dtype, way_out)
        require_one_dtype(self.name, ALL, a=a, b=b)
        return Spec(broadcast_shapes(self.name, condition.shape, a.shape, b.shape), a.dtype)

    def forward(self, mem: Memory, condition: Array, a: Array, b: Array) -> tuple[Array, Any]:
        y = mem.empty(broadcast_shapes(self.name, condition.shape, a.shape, b.shape), a.dtype)
        choose(condition, a, b, y)
        return y, (condition, a.shape, b.shape) if True in mem.needs else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        condition, a_shape, b_shape = saved
        ga = gb = None
        if needs[1]:
            ga = unbroadcast(mem, select(mem, gy, condition), a_shape)
        if needs[2]:
            other = np.logical_not(condition, out=mem.empty(condition.shape, bool))
            gb = unbroadcast(mem, select(mem, gy, other), b_shape)
        return None, ga, gb

    def forward_kernel(
        self, mem: Memory, condition: Array, a: Array, b: Array
    ) -> tuple[Array, Any]:
        y = mem.empty(broadcast_shapes(self.name, condition.shape, a.shape, b.shape), a.dtype)
        bits = y if a.dtype.kind == "f" else as_bits(y)
        kernel = op_kernel("where", "where_forward", bits.dtype)
        for_each_broadcast(mem, kernel, bits, condition, a.view(bits.dtype), b.view(bits.dtype))
        return y, (condition, a.shape, b.shape) if True in mem.needs else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        condition, *shapes = saved
        gradients = []
        for which, shape, needed in zip(("true", "false"), shapes, needs[1:], strict=True):
            kernel = op_kernel("where", "where_backward", gy.dtype, which)
            gradients.append(sum_broadcast(mem, kernel, shape, gy, condition) if needed else None)
        return None, *gradients

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        shapes = tuple([spec.shape for spec in specs])
        return broadcast_claim(shapes, broadcast_shapes(self.name, *shapes), carries)


def where(condition: Operand, a: Operand, b: Operand) -> Tensor:
    """`a` where the condition holds, else `b`, element by element.

    Parameters
    ----------
    condition : Tensor
        bool.
    a, b : Tensor or number
        The three shapes broadcast together; the dtypes of `a` and `b` promote as in PyTorch
        (`tg.result_type`).

    Returns
    -------
    Tensor
        The broadcast shape, in the promoted dtype.  Neither values nor gradients of the branch that
        is not taken have any influence, NaN included.

    Raises
    ------
    ShapeError
        The shapes do not broadcast together.
    DtypeError
        The condition is not bool.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, -2.0, 3.0])
    >>> tg.where(x > 0, x, 0.0).value
    array([1., 0., 3.], dtype=float32)
    """
    device = device_of(condition, a, b)
    a, b = promote("where", plain(a), plain(b), device=device)
    return Where()(as_tensor(condition, device=device), a, b)
