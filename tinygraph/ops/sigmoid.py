"""Sigmoid, the logistic function.

    y  = 1 / (1 + exp(-x))
    gx = gy * y * (1 - y)

As written it is right for every x, and keeps all digits of small results: for x far below 0,
exp(-x) may be infinite, and 1 / inf is the 0 that the result rounds to.  Nothing is subtracted and
nothing is infinite over infinite.

Source: Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 3.10.
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
class Sigmoid(Op):
    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.negative(x, out=mem.empty(x.shape, x.dtype))
        np.exp(y, out=y)
        y += 1
        np.reciprocal(y, out=y)
        return y, y if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = np.subtract(1, y, out=mem.empty(y.shape, y.dtype))
        gx *= y
        gx *= gy
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        for_each(op_kernel("sigmoid", "sigmoid_forward", x.dtype), x.size, x, y, x.size)
        return y, y if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(y.shape, y.dtype)
        for_each(op_kernel("sigmoid", "sigmoid_backward", y.dtype), y.size, gy, y, gx, y.size)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def sigmoid(x: Operand) -> Tensor:
    """The logistic function, `1 / (1 + exp(-x))`, element by element: from 0 to 1.

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
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 3.10.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sigmoid([-1000.0, 0.0, 1000.0]).value
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return Sigmoid()(x)
