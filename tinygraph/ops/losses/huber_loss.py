"""Huber's loss: squared near 0, absolute beyond, so that outliers do not dominate.

    d = x - y, c = d clipped to [-delta, delta]         M elements
    l = c * (d - c / 2)         which is d**2 / 2 where |d| <= delta, else delta * (|d| - delta / 2)
    loss = sum of l / M ("mean"), sum of l ("sum"), l ("none")
    gx = gloss * c / M ("mean"), gloss * c ("sum", "none")         gy = -gx

Smooth L1 is Huber's loss over its delta, so that the line has slope 1 wherever it begins.

Source: Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35,
1964.
"""

from __future__ import annotations

import numpy as np

from tinygraph.base import frozen, number
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import promote
from tinygraph.ops.elementwise.arithmetic import div
from tinygraph.ops.losses.l1_loss import l1_loss
from tinygraph.ops.losses.losses import ResidualLoss, pair_loss


@frozen
class HuberLoss(ResidualLoss, Op):
    delta: float = 1.0

    @property
    def constants(self) -> tuple[float, ...]:
        return (self.delta,)

    def of_residual(self, mem: Memory, d: Array) -> tuple[Array, Array]:
        clipped = np.clip(d, -self.delta, self.delta, out=mem.empty(d.shape, d.dtype))
        loss = np.divide(clipped, -2, out=mem.empty(d.shape, d.dtype))
        loss += d
        loss *= clipped
        return loss, clipped


@pair_loss
def huber_loss(x: Operand, y: Operand, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Huber's loss between two arrays of one shape.

    Parameters
    ----------
    delta : float
        Above 0: the difference at which the loss turns from half the square to a straight line.

    Raises
    ------
    ArgumentError
        An unknown reduction, or `delta` is not above 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.huber_loss([0.0, 0.0], [0.5, 3.0], "none").value
    array([0.125, 2.5  ], dtype=float32)
    """
    op = HuberLoss(reduction, number("huber_loss", "delta", delta, above=0))
    return op(*promote(op.name, x, y))


@pair_loss
def smooth_l1_loss(x: Operand, y: Operand, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Absolute error with a parabola around 0: Huber's loss divided by where its line begins.

    Parameters
    ----------
    beta : float
        At least 0: the difference at which the loss turns from the square over 2 * beta to a
        straight line; the absolute error for 0.

    Raises
    ------
    ArgumentError
        An unknown reduction, or `beta` is below 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.smooth_l1_loss([0.0, 0.0], [0.5, 3.0], "none", beta=2.0).value
    array([0.0625, 2.    ], dtype=float32)
    """
    beta = number("smooth_l1_loss", "beta", beta, 0)
    if not beta:
        return l1_loss(x, y, reduction)
    return div(huber_loss(x, y, reduction, beta), beta)
