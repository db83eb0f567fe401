"""Losses as layers of two inputs: what the network says, and what is right."""

from __future__ import annotations

from typing import Any, ClassVar

from tinygraph.base import number, one_of
from tinygraph.engine import Buffer, Operand, Tensor, as_tensor
from tinygraph.nn.module import Module
from tinygraph.ops.losses.binary_cross_entropy import binary_cross_entropy
from tinygraph.ops.losses.binary_cross_entropy_with_logits import binary_cross_entropy_with_logits
from tinygraph.ops.losses.cross_entropy import cross_entropy
from tinygraph.ops.losses.half_squared_error import half_squared_error
from tinygraph.ops.losses.huber_loss import huber_loss, smooth_l1_loss
from tinygraph.ops.losses.kl_div import kl_div
from tinygraph.ops.losses.l1_loss import l1_loss
from tinygraph.ops.losses.losses import REDUCTIONS
from tinygraph.ops.losses.mse_loss import mse_loss
from tinygraph.ops.losses.nll_loss import nll_loss


class Loss(Module):
    """What all losses share: how the losses of single elements become one number.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    """

    _settings: ClassVar[tuple[str, ...]] = ("reduction",)
    _reductions: ClassVar[tuple[str, ...]] = REDUCTIONS

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = one_of(type(self).__name__, "reduction", reduction, self._reductions)


class Weighted(Loss):
    """A loss whose classes or elements may count for more or less.

    Parameters
    ----------
    weight : array_like, optional
        A buffer then: it moves with the module, and stands in its state dict.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, weight: Operand | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = None if weight is None else Buffer(as_tensor(weight).numpy())


class CrossEntropyLoss(Weighted):
    """Cross-entropy between the softmax of logits and labels: see `tg.cross_entropy`.

    Parameters
    ----------
    weight : array_like (C), optional
        How much each class counts; a buffer.
    ignore_index : int, optional
        Integer labels that do not count.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float
        From 0 to 1: so much of each label is spread over all classes.

    Examples
    --------
    >>> from tinygraph import nn
    >>> round(nn.CrossEntropyLoss()([[0.0, 0.0]], [1]).item(), 4)  # log(2)
    0.6931
    """

    _unusual: ClassVar[dict[str, Any]] = {"ignore_index": -100, "label_smoothing": 0.0}

    def __init__(
        self,
        weight: Operand | None = None,
        ignore_index: int | None = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        smoothing = number("CrossEntropyLoss", "label_smoothing", label_smoothing, 0, 1)
        self.label_smoothing = smoothing

    def forward(self, input: Operand, target: Operand) -> Tensor:
        settings = self.weight, self.ignore_index, self.reduction, self.label_smoothing
        return cross_entropy(input, target, *settings)


class NLLLoss(Weighted):
    """Negative log-likelihood of labels, after `LogSoftmax`: see `tg.nll_loss`.

    Parameters
    ----------
    weight : array_like (C), optional
        How much each class counts; a buffer.
    ignore_index : int, optional
        Labels that do not count.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> from tinygraph import nn
    >>> nn.NLLLoss()([[-1.0, -3.0], [-2.0, -5.0]], [1, 0]).item()
    2.5
    """

    _unusual: ClassVar[dict[str, Any]] = {"ignore_index": -100}

    def __init__(
        self,
        weight: Operand | None = None,
        ignore_index: int | None = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Operand, target: Operand) -> Tensor:
        settings = self.weight, self.ignore_index, self.reduction
        return nll_loss(input, target, *settings)


class BCELoss(Weighted):
    """Cross-entropy between probabilities and labels 0 or 1: see `tg.binary_cross_entropy`."""

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Weighted):
    """The same of the sigmoid of logits: see `tg.binary_cross_entropy_with_logits`.

    Parameters
    ----------
    weight : array_like, optional
        Factors of the losses; a buffer.
    reduction : {"mean", "sum", "none"}
    pos_weight : array_like, optional
        Factors of the part of a yes; a buffer.
    """

    def __init__(
        self,
        weight: Operand | None = None,
        reduction: str = "mean",
        pos_weight: Operand | None = None,
    ) -> None:
        super().__init__(weight, reduction)
        self.pos_weight = None if pos_weight is None else Buffer(as_tensor(pos_weight).numpy())

    def forward(self, input: Operand, target: Operand) -> Tensor:
        settings = self.weight, self.reduction, self.pos_weight
        return binary_cross_entropy_with_logits(input, target, *settings)


class MSELoss(Loss):
    """Mean squared error: see `tg.mse_loss`."""

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return mse_loss(input, target, self.reduction)


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

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return half_squared_error(input, target, self.reduction)


class L1Loss(Loss):
    """Mean absolute error: see `tg.l1_loss`."""

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return l1_loss(input, target, self.reduction)


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

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return huber_loss(input, target, self.reduction, self.delta)


class SmoothL1Loss(Loss):
    """Absolute error with a parabola around 0: see `tg.smooth_l1_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    beta : float
        Where one becomes the other, at least 0.
    """

    _settings: ClassVar[tuple[str, ...]] = ("reduction", "beta")

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = number("SmoothL1Loss", "beta", beta, 0)

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return smooth_l1_loss(input, target, self.reduction, self.beta)


class KLDivLoss(Loss):
    """Divergence of log-probabilities from probabilities: see `tg.kl_div`.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
    log_target : bool
        Whether the second input holds logarithms too.
    """

    _settings: ClassVar[tuple[str, ...]] = ("reduction", "log_target")
    _reductions: ClassVar[tuple[str, ...]] = ("batchmean", *REDUCTIONS)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = bool(log_target)

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return kl_div(input, target, self.reduction, self.log_target)
