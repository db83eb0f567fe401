"""Tanh, the hyperbolic tangent.

    y  = (exp(x) - exp(-x)) / (exp(x) + exp(-x))
    gx = gy * (1 - y**2)

Source: LeCun, Bottou, Orr, Mueller, "Efficient backprop", in Neural Networks: Tricks of the Trade,
Springer 1998, section 4.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.launch import for_each
from tinygraph.shapes import Array, Spec, require_float
from tinygraph.tensor import Operand, Tensor


@frozen
class Tanh(Op):
    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.tanh(x, out=mem.empty(x.shape, x.dtype))
        return y, y if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = np.square(y, out=mem.empty(y.shape, y.dtype))
        np.subtract(1, gx, out=gx)
        gx *= gy
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        for_each(op_kernel("tanh", "tanh_forward", x.dtype), x.size, x, y, x.size)
        return y, y if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(y.shape, y.dtype)
        for_each(op_kernel("tanh", "tanh_backward", y.dtype), y.size, gy, y, gx, y.size)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def tanh(x: Operand) -> Tensor:
    """The hyperbolic tangent, element by element: from -1 to 1.

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
        `x` is not of a float dtype.

    References
    ----------
    LeCun, Bottou, Orr, Mueller, "Efficient backprop", in Neural Networks: Tricks of the Trade,
    Springer 1998, section 4.4.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.tanh([-1000.0, 0.0, 1000.0]).value
    array([-1.,  0.,  1.], dtype=float32)
    """
    return Tanh()(x)
