"""Huber's loss: squared near 0, absolute beyond, so that outliers do not dominate.

    d = x - y, c = d clipped to [-delta, delta]         M elements
    l = c * (d - c / 2)         which is d**2 / 2 where |d| <= delta, else delta * (|d| - delta / 2)
    loss = sum of l / M ("mean"), sum of l ("sum"), l ("none")
    gx = gloss * c / M ("mean"), gloss * c ("sum", "none")         gy = -gx

Source: Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35,
1964.
"""

from __future__ import annotations

import numpy as np

from tinygraph.checks import number
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Op
from tinygraph.ops.shared.losses import ResidualLoss, pair_loss
from tinygraph.ops.shared.operands import promote
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor


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
