"""Binary cross-entropy of logits: of the sigmoid of x, in one op.

    loss = max(x, 0) - x * y + log(1 + exp(-|x|))       exp never overflows
    gx   = gloss * (sigmoid(x) - y)
    gy   = -gloss * x

It is -(y * log(p) + (1 - y) * log(1 - p)) for p = sigmoid(x), rearranged so that neither logarithm
meets a 0.  A weight of the positive class is one more term: y * (weight - 1) * softplus(-x).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import device_of, promote
from tinygraph.ops.elementwise.arithmetic import add, mul, sub
from tinygraph.ops.elementwise.elementwise import neg
from tinygraph.ops.elementwise.sigmoid import Sigmoid
from tinygraph.ops.elementwise.softplus import softplus, softplus_tail
from tinygraph.ops.losses.losses import PairLoss, pair_loss
from tinygraph.ops.losses.weighted import as_weight, reduced


@frozen
class BinaryCrossEntropyWithLogits(PairLoss, Op):
    def losses(self, mem: Memory, x: Array, y: Array) -> tuple[Array, Any]:
        loss = np.maximum(x, 0, out=mem.empty(x.shape, x.dtype))
        loss -= np.multiply(x, y, out=mem.empty(x.shape, x.dtype))
        tail = mem.empty(x.shape, x.dtype)
        softplus_tail(x, tail)
        loss += tail  # last: where y is the class of x, all else is 0
        return loss, (x, y)

    def slope(self, mem: Memory, saved: Any, operand: int) -> tuple[Array, float]:
        x, y = saved
        if operand:
            return x, -1.0
        slope = mem.empty(x.shape, x.dtype)
        Sigmoid().function(mem, x, slope)
        slope -= y
        return slope, 1.0


@pair_loss
def binary_cross_entropy_with_logits(
    x: Operand,
    y: Operand,
    weight: Operand | None = None,
    reduction: str = "mean",
    pos_weight: Operand | None = None,
) -> Tensor:
    """Cross-entropy between the sigmoid of logits and labels that are 0 (no) or 1 (yes).

    Parameters
    ----------
    x : Tensor
        Logits, any numbers: above 0 means yes; float32 or float64.
    y : Tensor
        Labels of the same shape and dtype: 0, 1, or a probability in between.
    weight : Tensor, optional
        Factors of the losses, of a shape that broadcasts to theirs.
    pos_weight : Tensor, optional
        Factors of the part of a yes, above 1 for more recall, of a shape that broadcasts; (C) for
        the classes of labels (N, C).

    Raises
    ------
    ShapeError
        The shapes differ: nothing is broadcast here but the weights, to the shape of `x`.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.2.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, y = [0.0, 1000.0], [1.0, 0.0]
    >>> tg.binary_cross_entropy_with_logits(x, y, reduction="none").value.round(4)
    array([6.931e-01, 1.000e+03], dtype=float32)
    """
    if weight is None and pos_weight is None:
        op = BinaryCrossEntropyWithLogits(reduction)
        return op(*promote(op.name, x, y))
    op = BinaryCrossEntropyWithLogits("none")
    x, y = promote(op.name, x, y, device=device_of(x, y, weight, pos_weight))
    losses = op(x, y)
    if pos_weight is not None:
        more = sub(as_weight(op.name, "pos_weight", pos_weight, losses), 1.0)
        losses = add(losses, mul(mul(y, more), softplus(neg(x))))
    if weight is not None:
        losses = mul(losses, as_weight(op.name, "weight", weight, losses))
    return reduced(op.name, losses, reduction)
