"""Binary cross-entropy of probabilities.

    loss = -(y * log(x) + (1 - y) * log(1 - x))     logarithms below -100 count as -100
    gx   = gloss * (x - y) / max(x * (1 - x), 1e-12)
    gy   = gloss * (log(1 - x) - log(x))

Both limits keep loss and gradient finite at x = 0 and x = 1.  Where the probability is the sigmoid
of a logit, binary_cross_entropy_with_logits needs no limits and loses no digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import device_of, promote, require_range
from tinygraph.ops.elementwise.arithmetic import mul
from tinygraph.ops.losses.losses import PairLoss, pair_loss
from tinygraph.ops.losses.weighted import as_weight, reduced

LOWEST_LOG = -100
SMALLEST_VARIANCE = 1e-12


@frozen
class BinaryCrossEntropy(PairLoss, Op):
    def check(self, x: Array, y: Array) -> None:
        way_out = "apply tg.sigmoid, or use tg.binary_cross_entropy_with_logits"
        require_range(self.name, "x", x, 0, 1, "probabilities from 0 to 1", way_out)
        require_range(self.name, "y", y, 0, 1, "labels from 0 to 1", "divide them by the largest")

    def losses(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        log_x = np.log(x, out=mem.empty(x.shape, x.dtype))
        np.maximum(log_x, LOWEST_LOG, out=log_x)
        log_rest = np.negative(x, out=mem.empty(x.shape, x.dtype))
        np.log1p(log_rest, out=log_rest)
        np.maximum(log_rest, LOWEST_LOG, out=log_rest)
        slope_y = None
        if mem.needs[1]:
            slope_y = np.subtract(log_rest, log_x, out=mem.empty(x.shape, x.dtype))
        log_x *= y
        loss = np.subtract(1, y, out=mem.empty(x.shape, x.dtype))
        loss *= log_rest
        loss += log_x
        np.subtract(0, loss, out=loss)  # unlike a negation, never -0
        return loss, (x, y, slope_y)

    def slope(self, mem: Memory, saved: Any, operand: int) -> tuple[Array, float]:
        x, y, slope_y = saved
        if operand:
            return slope_y, 1.0
        variance = np.subtract(1, x, out=mem.empty(x.shape, x.dtype))
        variance *= x
        np.maximum(variance, SMALLEST_VARIANCE, out=variance)
        slope_x = np.subtract(x, y, out=mem.empty(x.shape, x.dtype))
        slope_x /= variance
        return slope_x, 1.0


@pair_loss
def binary_cross_entropy(
    x: Operand, y: Operand, weight: Operand | None = None, reduction: str = "mean"
) -> Tensor:
    """Cross-entropy between probabilities of a yes and labels that are 0 (no) or 1 (yes).

    Parameters
    ----------
    x : Tensor
        Predicted probabilities from 0 to 1; float32 or float64.
    y : Tensor
        Labels of the same shape and dtype: 0, 1, or a probability in between.
    weight : Tensor, optional
        Factors of the losses, of a shape that broadcasts to theirs.

    Returns
    -------
    Tensor
        0-d, or of the shape of `x` for "none".  Logarithms below -100 count as -100, so the loss is
        finite at 0 and 1.  The mean of no element is NaN, and NaN propagates.

    Raises
    ------
    ArgumentError
        A number in `x` or `y` is below 0 or above 1, or the reduction is unknown.  On a GPU, which
        would have to be waited for, the loss of such a number is NaN.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.2.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.binary_cross_entropy([0.5, 1.0, 0.0], [1.0, 1.0, 1.0], reduction="none").value.round(4)
    array([  0.6931,   0.    , 100.    ], dtype=float32)
    """
    x, y = promote("binary_cross_entropy", x, y, device=device_of(x, y, weight))
    if weight is None:
        return BinaryCrossEntropy(reduction)(x, y)
    losses = BinaryCrossEntropy("none")(x, y)
    losses = mul(losses, as_weight("binary_cross_entropy", "weight", weight, losses))
    return reduced("binary_cross_entropy", losses, reduction)
