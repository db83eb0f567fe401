"""Mean absolute error.

    d = x - y                                   M elements
    loss = sum of |d| / M  ("mean"), sum of |d| ("sum"), |d| ("none")
    gx = gloss * sign(d) / M  ("mean"), gloss * sign(d) ("sum", "none")         gy = -gx

The derivative at d = 0 is taken as 0.
"""

from __future__ import annotations

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import promote
from tinygraph.ops.losses.losses import ResidualLoss, pair_loss


@frozen
class L1Loss(ResidualLoss, Op):
    def of_residual(self, mem: Memory, d: Array) -> tuple[Array, Array]:
        slope = np.sign(d, out=mem.empty(d.shape, d.dtype)) if True in mem.needs else d
        return np.abs(d, out=d), slope


@pair_loss
def l1_loss(x: Operand, y: Operand, reduction: str = "mean") -> Tensor:
    """Mean absolute error between two arrays of one shape.

    References
    ----------
    Boyd, Vandenberghe, "Convex Optimization", Cambridge University Press 2004, section 6.1.2.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.l1_loss([1.0, 2.0], [1.0, 5.0]).item()
    1.5
    """
    return L1Loss(reduction)(*promote("l1_loss", x, y))
