"""Losses as layers of two inputs: what the network says, and what is right."""

from __future__ import annotations

from tinygraph.engine import Operand, Tensor
from tinygraph.nn.settings import Settings, layer, setting
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


class Loss(Settings):
    """What all losses share: two inputs, and how the losses of single elements become one number.

    Parameters
    ----------
    weight : array_like, optional
        Where classes or elements may count for more or less: a buffer then.  It moves with the
        module, and stands in its state dict.
    reduction : {"mean", "sum", "none"}
    """

    def forward(self, input: Operand, target: Operand) -> Tensor:
        return self.of(input, target)


@layer(cross_entropy)
class CrossEntropyLoss(Loss):
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

    weight: Operand | None = None
    ignore_index: int | None = setting(default=-100, rare=True)
    reduction: str = setting(default="mean", words=REDUCTIONS)
    label_smoothing: float = setting(default=0.0, rare=True, least=0, most=1)


@layer(nll_loss)
class NLLLoss(Loss):
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

    weight: Operand | None = None
    ignore_index: int | None = setting(default=-100, rare=True)
    reduction: str = setting(default="mean", words=REDUCTIONS)


@layer(binary_cross_entropy)
class BCELoss(Loss):
    """Cross-entropy between probabilities and labels 0 or 1: see `tg.binary_cross_entropy`."""

    weight: Operand | None = None
    reduction: str = setting(default="mean", words=REDUCTIONS)


@layer(binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(Loss):
    """The same of the sigmoid of logits: see `tg.binary_cross_entropy_with_logits`.

    Parameters
    ----------
    weight : array_like, optional
        Factors of the losses; a buffer.
    reduction : {"mean", "sum", "none"}
    pos_weight : array_like, optional
        Factors of the part of a yes; a buffer.
    """

    weight: Operand | None = None
    reduction: str = setting(default="mean", words=REDUCTIONS)
    pos_weight: Operand | None = None


@layer(mse_loss)
class MSELoss(Loss):
    """Mean squared error: see `tg.mse_loss`."""

    reduction: str = setting(default="mean", words=REDUCTIONS)


@layer(half_squared_error)
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

    reduction: str = setting(default="sum", words=REDUCTIONS)


@layer(l1_loss)
class L1Loss(Loss):
    """Mean absolute error: see `tg.l1_loss`."""

    reduction: str = setting(default="mean", words=REDUCTIONS)


@layer(huber_loss)
class HuberLoss(Loss):
    """Squared for small errors, absolute for large ones: see `tg.huber_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    delta : float
        Where one becomes the other, above 0.
    """

    reduction: str = setting(default="mean", words=REDUCTIONS)
    delta: float = setting(default=1.0, above=0)


@layer(smooth_l1_loss)
class SmoothL1Loss(Loss):
    """Absolute error with a parabola around 0: see `tg.smooth_l1_loss`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    beta : float
        Where one becomes the other, at least 0.
    """

    reduction: str = setting(default="mean", words=REDUCTIONS)
    beta: float = setting(default=1.0, least=0)


@layer(kl_div)
class KLDivLoss(Loss):
    """Divergence of log-probabilities from probabilities: see `tg.kl_div`.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
    log_target : bool
        Whether the second input holds logarithms too.
    """

    reduction: str = setting(default="mean", words=("batchmean", *REDUCTIONS))
    log_target: bool = False
