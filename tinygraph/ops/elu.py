"""ELU, the exponential linear unit.

    y  = max(x, 0) + alpha * (exp(min(x, 0)) - 1)
    gx = gy where x > 0, else gy * alpha * exp(x)     (the derivative at 0 is taken as alpha)

Source: Clevert, Unterthiner, Hochreiter, "Fast and accurate deep network learning by exponential
linear units (ELUs)", ICLR 2016, equation 15.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.leaky_relu import one_above_zero
from tinygraph.ops.shared.hyperparameters import finite
from tinygraph.ops.shared.launch import for_each
from tinygraph.shapes import Array, Spec, require_float
from tinygraph.tensor import Operand, Tensor


@frozen
class Elu(Op):
    alpha: float = 1.0

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.minimum(x, 0, out=mem.empty(x.shape, x.dtype))
        np.expm1(y, out=y)  # exp(y) - 1 would lose the digits of a small y
        y *= self.alpha
        y += np.maximum(x, 0, out=mem.empty(x.shape, x.dtype))
        return y, x if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, x: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = np.minimum(x, 0, out=mem.empty(x.shape, x.dtype))
        np.exp(gx, out=gx)  # 1 where x > 0
        if self.alpha != 1:
            gx *= one_above_zero(mem, x, self.alpha)
        gx *= gy
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        for_each(op_kernel("elu", "elu_forward", x.dtype), x.size, x, y, x.size, self.alpha)
        return y, x if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, x: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(x.shape, x.dtype)
        for_each(op_kernel("elu", "elu_backward", x.dtype), x.size, gy, x, gx, x.size, self.alpha)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def elu(x: Operand, alpha: float = 1.0) -> Tensor:
    """Exponential linear unit, `where(x > 0, x, alpha * (exp(x) - 1))`, element by element.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    alpha : float
        The output tends to -alpha far below 0.  The derivative at 0 is taken as alpha.

    Returns
    -------
    Tensor
        Same shape and dtype.  NaN propagates, -inf gives -alpha.

    Raises
    ------
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        `alpha` is not a finite number.

    References
    ----------
    Clevert, Unterthiner, Hochreiter, "Fast and accurate deep network learning by exponential linear
    units (ELUs)", ICLR 2016.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.elu([-100.0, 0.0, 3.0], alpha=0.5).value
    array([-0.5,  0. ,  3. ], dtype=float32)
    """
    return Elu(finite("elu", "alpha", alpha))(x)
