"""Mean squared error.

    d = x - y                                   M elements
    loss = sum of d**2 / M  ("mean"), sum of d**2 ("sum"), d**2 ("none")
    gx = gloss * 2 * d / M  ("mean"), gloss * 2 * d ("sum", "none")         gy = -gx

The mean is over all elements, not over samples alone.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import promote
from tinygraph.ops.losses.losses import ResidualLoss, pair_loss


@frozen
class MseLoss(ResidualLoss, Op):
    factor: ClassVar[float] = 2.0  # the slope is 2 * d

    def of_residual(self, mem: Memory, d: Array) -> tuple[Array, Array]:
        return np.multiply(d, d, out=mem.empty(d.shape, d.dtype)), d


@pair_loss
def mse_loss(x: Operand, y: Operand, reduction: str = "mean") -> Tensor:
    """Mean squared error between two arrays of one shape.

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here, for a loss of (N, 1) with (N,) is a mistake.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 5.1.4.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.mse_loss([1.0, 2.0], [1.0, 4.0]).item()
    2.0
    """
    return MseLoss(reduction)(*promote("mse_loss", x, y))
