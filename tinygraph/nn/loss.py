"""Losses as layers of two inputs: what the network says, and what is right."""

from __future__ import annotations

from tinygraph.nn.module import Module
from tinygraph.ops.mse_loss import mse_loss
from tinygraph.ops.softmax_cross_entropy import softmax_cross_entropy
from tinygraph.ops.softmax_cross_entropy import require_reduction
from tinygraph.tensor import Operand, Tensor


class CrossEntropyLoss(Module):
    """Cross-entropy between the softmax of logits and labels: see `tg.softmax_cross_entropy`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    ignore_index : int, optional
        Labels that do not count.

    Examples
    --------
    >>> from tinygraph import nn
    >>> round(nn.CrossEntropyLoss()([[0.0, 0.0]], [1]).item(), 4)  # log(2)
    0.6931
    """

    def __init__(self, reduction: str = "mean", ignore_index: int | None = None) -> None:
        self.reduction = require_reduction("CrossEntropyLoss", reduction)
        self.ignore_index = ignore_index

    def forward(self, logits: Operand, labels: Operand) -> Tensor:
        return softmax_cross_entropy(logits, labels, self.reduction, self.ignore_index)

    def extra_repr(self) -> str:
        ignored = "" if self.ignore_index is None else f", ignore_index={self.ignore_index}"
        return f"reduction={self.reduction!r}{ignored}"


class MSELoss(Module):
    """Mean squared error: see `tg.mse_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = require_reduction("MSELoss", reduction)

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return mse_loss(x, y, self.reduction)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"
