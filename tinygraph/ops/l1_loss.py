"""Mean absolute error.

    d = x - y                                   M elements
    loss = sum of |d| / M  ("mean"), sum of |d| ("sum"), |d| ("none")
    gx = gloss * sign(d) / M  ("mean"), gloss * sign(d) ("sum", "none")         gy = -gx

The derivative at d = 0 is taken as 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Op
from tinygraph.ops.shared.losses import ResidualLoss, reduce, require_reduction
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor


@frozen
class L1Loss(ResidualLoss, Op):
    def forward(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        d = np.subtract(x, y, out=mem.empty(x.shape, x.dtype))
        slope = np.sign(d, out=mem.empty(x.shape, x.dtype)) if True in mem.needs else None
        return reduce(mem, np.abs(d, out=d), self.reduction), slope


def l1_loss(x: Operand, y: Operand, reduction: str = "mean") -> Tensor:
    """Mean absolute error between two arrays of one shape.

    Parameters
    ----------
    x, y : Tensor
        Same shape and dtype, float32 or float64.
    reduction : {"mean", "sum", "none"}
        Over all elements; "none" keeps them.

    Returns
    -------
    Tensor
        0-d, or of the shape of `x` for "none".  The mean of no element is NaN.

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here.
    DtypeError
        The inputs are not both float32 or both float64.
    ArgumentError
        An unknown reduction.

    References
    ----------
    Boyd, Vandenberghe, "Convex Optimization", Cambridge University Press 2004, section 6.1.2.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.l1_loss([1.0, 2.0], [1.0, 5.0]).item()
    1.5
    """
    return L1Loss(require_reduction("l1_loss", reduction))(x, y)
