"""Cross-entropy of logits with weights of classes and smoothed labels, as PyTorch has it.

    x (N, C, D...), labels t (N, D...), log p = log_softmax of x over the classes
    w (C)     the weight of each class, 1 where none is given
    s         label smoothing: so much of each label is spread over all classes

    l[n, c] = -w[c] * log p[n, c]
    loss[n] = (1 - s) * l[n, t[n]] + s / C * sum over c of l[n, c]
    loss    = sum of loss[n] / sum of w[t[n]]                           ("mean")

of labels that are not `ignore_index`.  Without weights that is softmax_cross_entropy, which smooths
in the same pass.  With both, its terms are two of these: of labels, and of w as probabilities.
Labels that are probabilities become w * ((1 - s) * t + s / C), and their mean is one over rows.
"""

from __future__ import annotations

from tinygraph.base import ArgumentError, number
from tinygraph.engine import Operand, Tensor
from tinygraph.ops.common import promote
from tinygraph.ops.elementwise.arithmetic import add, mul
from tinygraph.ops.elementwise.comparison import not_equal
from tinygraph.ops.elementwise.where import where
from tinygraph.ops.losses.losses import label_loss
from tinygraph.ops.losses.softmax_cross_entropy import SoftmaxCrossEntropy
from tinygraph.ops.losses.weighted import (
    beside,
    class_weight,
    label_weights,
    of_one_sample,
    reduced,
)
from tinygraph.ops.reductions.sum import sum
from tinygraph.ops.shaping.expand import expand
from tinygraph.ops.shaping.reshape import reshape


@label_loss
def cross_entropy(
    logits: Operand,
    labels: Operand,
    weight: Operand | None = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy between the softmax of logits and labels, with PyTorch's arguments.

    Parameters
    ----------
    logits : Tensor (N, C) or (N, C, D...), or (C) of one sample
        Scores of C classes, not normalised; float32 or float64.
    labels : integers (N,) or (N, D...), or one, or probabilities of the shape of `logits`
        The class of each sample, or how probable each class is.
    weight : Tensor (C), optional
        How much each class counts, in the loss and in the mean of integer labels.
    ignore_index : int, optional
        Integer labels of this value count neither in the loss nor in the mean.
    label_smoothing : float
        From 0 to 1: so much of each label is spread evenly over all classes.

    Raises
    ------
    ShapeError, DtypeError
        Labels do not fit the logits, or are floats without a class axis; `weight` has not the shape
        (C).
    ArgumentError
        A label out of range, an unknown reduction, label_smoothing not from 0 to 1, or an
        `ignore_index` of at least 0 with probabilities.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = [[0.0, 0.0], [3.0, 0.0]]
    >>> tg.cross_entropy(x, [1, 0], [1.0, 3.0], reduction="none").value.round(4)
    array([2.0794, 0.0486], dtype=float32)
    >>> round(tg.cross_entropy(x, [1, -100], label_smoothing=0.1).item(), 4)  # log(2)
    0.6931
    """
    x, t = beside(logits, labels, weight)
    if x.ndim == 1:
        settings = weight, ignore_index, reduction, label_smoothing
        return of_one_sample(cross_entropy, x, t, *settings)
    plain = weight is None and label_smoothing == 0
    if plain and t.value.dtype.kind != "f":  # first, for tiny graphs feel each microsecond
        return SoftmaxCrossEntropy(reduction, ignore_index)(x, t)
    smoothing = number("cross_entropy", "label_smoothing", label_smoothing, 0, 1)
    if t.dtype.kind == "f":
        if ignore_index is not None and ignore_index >= 0:
            expected = "a number below 0, or None, with probabilities"
            raise ArgumentError("cross_entropy", "ignore_index", expected, ignore_index)
        op = SoftmaxCrossEntropy(reduction)
        x, t = promote(op.name, x, t)
        if plain or t.shape != x.shape:  # which the op refuses
            return op(x, t)
        t = add(mul(t, 1 - smoothing), smoothing / x.shape[1])
        return op(x, t if weight is None else mul(t, _columns(x, weight)))
    if weight is None:
        return SoftmaxCrossEntropy(reduction, ignore_index, smoothing)(x, t)
    losses = SoftmaxCrossEntropy("none", ignore_index)(x, t)
    w = class_weight("cross_entropy", weight, x)
    of_labels = label_weights(w, t, ignore_index)
    losses = mul(losses, of_labels)
    if smoothing:
        evenly = SoftmaxCrossEntropy("none")(x, expand(_columns(x, w), x.shape))
        if ignore_index is not None:
            evenly = where(not_equal(t.astype("int64"), ignore_index), evenly, 0.0)
        losses = add(mul(losses, 1 - smoothing), mul(evenly, smoothing / x.shape[1]))
    return reduced("cross_entropy", losses, reduction, sum(of_labels))


def _columns(x: Tensor, weight: Operand) -> Tensor:
    """The weights of classes as (C, 1...), which broadcast against logits (N, C, D...)."""
    return reshape(class_weight("cross_entropy", weight, x), (-1,) + (1,) * (x.ndim - 2))
