"""ReLU, the rectified linear unit.

    y  = x   where x > 0, else 0        (NaN stays NaN)
    gx = gy  where y != 0, else 0       (the derivative at 0 is taken as 0)

Source: Nair, Hinton, "Rectified linear units improve restricted Boltzmann machines", ICML 2010.
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
class Relu(Op):
    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        np.maximum(x, 0, out=y)  # NaN propagates
        y += 0  # -0 becomes 0
        return y, y if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        passes = mem.empty(y.shape, bool)
        np.not_equal(y, 0, out=passes)
        gx = mem.empty(y.shape, y.dtype)
        np.multiply(gy, passes, out=gx)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        for_each(op_kernel("relu", "relu_forward", x.dtype), x.size, x, y, x.size)
        return y, y if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(y.shape, y.dtype)
        for_each(op_kernel("relu", "relu_backward", y.dtype), y.size, gy, y, gx, y.size)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def relu(x: Operand) -> Tensor:
    """Rectified linear unit, `where(x <= 0, 0, x)`, element by element.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.

    Returns
    -------
    Tensor
        Same shape and dtype.  NaN propagates, -inf gives 0, and -0 gives 0.

    Raises
    ------
    DtypeError
        `x` is not of a float dtype.

    References
    ----------
    Nair, Hinton, "Rectified linear units improve restricted Boltzmann machines", ICML 2010.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.relu(tg.Tensor([-1.0, 0.0, 2.0])).value
    array([0., 0., 2.], dtype=float32)
    """
    return Relu()(x)
