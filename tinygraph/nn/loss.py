"""Losses as layers of two inputs: what the network says, and what is right."""

from __future__ import annotations

from typing import Any, ClassVar

from tinygraph.checks import number, one_of
from tinygraph.nn.module import Module
from tinygraph.ops.binary_cross_entropy import binary_cross_entropy
from tinygraph.ops.binary_cross_entropy_with_logits import binary_cross_entropy_with_logits
from tinygraph.ops.half_squared_error import half_squared_error
from tinygraph.ops.huber_loss import huber_loss
from tinygraph.ops.l1_loss import l1_loss
from tinygraph.ops.mse_loss import mse_loss
from tinygraph.ops.nll_loss import nll_loss
from tinygraph.ops.shared.losses import REDUCTIONS
from tinygraph.ops.softmax_cross_entropy import softmax_cross_entropy
from tinygraph.tensor import Operand, Tensor


class Loss(Module):
    """What all losses share: how the losses of single elements become one number.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    """

    _settings: ClassVar[tuple[str, ...]] = ("reduction",)

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = one_of(type(self).__name__, "reduction", reduction, REDUCTIONS)


class LabelLoss(Loss):
    """A loss of integer labels, some of which may not count.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    ignore_index : int, optional
        Labels that do not count.
    """

    _unusual: ClassVar[dict[str, Any]] = {"ignore_index": None}

    def __init__(self, reduction: str = "mean", ignore_index: int | None = None) -> None:
        super().__init__(reduction)
        self.ignore_index = ignore_index


class CrossEntropyLoss(LabelLoss):
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

    def forward(self, logits: Operand, labels: Operand) -> Tensor:
        return softmax_cross_entropy(logits, labels, self.reduction, self.ignore_index)


class NLLLoss(LabelLoss):
    """Negative log-likelihood of labels, after `LogSoftmax`: see `tg.nll_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    ignore_index : int, optional
        Labels that do not count.

    Examples
    --------
    >>> from tinygraph import nn
    >>> nn.NLLLoss()([[-1.0, -3.0], [-2.0, -5.0]], [1, 0]).item()
    2.5
    """

    def forward(self, log_probabilities: Operand, labels: Operand) -> Tensor:
        return nll_loss(log_probabilities, labels, self.reduction, self.ignore_index)


class BCELoss(Loss):
    """Cross-entropy between probabilities and labels 0 or 1: see `tg.binary_cross_entropy`."""

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return binary_cross_entropy(x, y, self.reduction)


class BCEWithLogitsLoss(Loss):
    """The same of the sigmoid of logits: see `tg.binary_cross_entropy_with_logits`."""

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return binary_cross_entropy_with_logits(x, y, self.reduction)


class MSELoss(Loss):
    """Mean squared error: see `tg.mse_loss`."""

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return mse_loss(x, y, self.reduction)


class HalfSquaredError(Loss):
    """Half the sum of squared errors, whose derivative is the error: see `tg.half_squared_error`.

    Parameters
    ----------
    reduction : {"sum", "mean", "none"}

    Examples
    --------
    >>> from tinygraph import nn
    >>> nn.HalfSquaredError()([1.0, 2.0], [1.0, 5.0]).item()
    4.5
    """

    def __init__(self, reduction: str = "sum") -> None:
        super().__init__(reduction)

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return half_squared_error(x, y, self.reduction)


class L1Loss(Loss):
    """Mean absolute error: see `tg.l1_loss`."""

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return l1_loss(x, y, self.reduction)


class HuberLoss(Loss):
    """Squared for small errors, absolute for large ones: see `tg.huber_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    delta : float
        Where one becomes the other, above 0.
    """

    _settings: ClassVar[tuple[str, ...]] = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = number("HuberLoss", "delta", delta, above=0)

    def forward(self, x: Operand, y: Operand) -> Tensor:
        return huber_loss(x, y, self.reduction, self.delta)
