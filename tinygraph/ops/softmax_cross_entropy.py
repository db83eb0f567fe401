"""Softmax cross-entropy: how badly logits predict a class, in one op.

    N samples, C classes, D... further axes (pixels); x (N, C, D...)
    labels t: integers (N, D...), or probabilities (N, C, D...)

    p       = softmax of x over the classes, computed from x - max(x)
    loss[n] = -log p[n, t[n]]              or -sum over c of t[n, c] * log p[n, c]
    gx[n]   = gloss[n] * (p[n] - onehot(t[n]))    or gloss[n] * (p[n] * sum of t[n] - t[n])
    gt[n]   = -gloss[n] * log p[n]                for probabilities

The mean is over all labels that are not `ignore_index`.

Source: Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990;
Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.errors import ArgumentError, DtypeError, explain
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.losses import (
    LabelLoss,
    check_labels,
    reduce,
    require_classes,
    require_label_shape,
    require_reduction,
)
from tinygraph.ops.softmax import translated
from tinygraph.shapes import Array, Shape, Spec, require_float
from tinygraph.tensor import Operand, Tensor


def _rows(x: Array) -> Array:
    """(N, C, D...) as (M, C), one row a label; a copy only where there are further axes."""
    return x if x.ndim == 2 else np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _unrows(rows: Array, shape: Shape) -> Array:
    """The inverse of `_rows`."""
    if len(shape) == 2:
        return rows
    return np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(LabelLoss, Op):
    def infer(self, x: Spec, labels: Spec) -> Spec:
        each = require_classes(self.name, "logits", x)
        if labels.dtype.kind in "iu":
            require_label_shape(self.name, "logits", x, labels)
        elif labels.shape != x.shape or labels.dtype.kind != "f":
            raise DtypeError(
                explain(self.name, "labels", f"integers of shape {each} or probabilities of shape "
                        f"{x.shape}", f"{labels.dtype} of shape {labels.shape}",
                        "convert class numbers with labels.astype('int64')")
            )  # fmt: skip
        else:
            require_float(self.name, logits=x, labels=labels)
            if self.ignore_index is not None:
                raise ArgumentError(explain(self.name, "ignore_index", "None with probabilities",
                                            self.ignore_index))  # fmt: skip
        return Spec(each if self.reduction == "none" else (), x.dtype)

    def check(self, x: Array, labels: Array) -> None:
        if labels.dtype.kind != "f":
            check_labels(self.name, labels, x.shape[1], self.ignore_index)

    def forward(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        log_p = translated(mem, _rows(x), 1)  # (M, C)
        p = np.exp(log_p, out=mem.empty(log_p.shape, x.dtype))
        total = np.sum(p, axis=1, keepdims=True, out=mem.empty((len(p), 1), x.dtype))
        p /= total
        log_p -= np.log(total, out=total)
        loss = mem.empty((len(p),), x.dtype)
        if labels.dtype.kind == "f":
            t, counts, count = _rows(labels), None, len(p)
            np.einsum("mc,mc->m", t, log_p, out=loss)
        else:
            t, counts, count = self.kept(labels.reshape(-1))
            loss[...] = log_p[np.arange(len(t)), t]
            if counts is not None:
                loss[~counts] = 0
        np.negative(loss, out=loss)
        saved = (x.shape, p, t, log_p if mem.needs[1] else None, counts, count)
        if self.reduction == "none":
            return loss.reshape(x.shape[0], *x.shape[2:]), saved
        return reduce(mem, loss, self.reduction, count), saved

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        shape, p, t, log_p, counts, count = saved
        g = gy.reshape(-1, 1)  # (M, 1), or (1, 1) for a reduced loss
        if self.reduction == "mean":
            g = np.divide(g, p.dtype.type(count), out=mem.empty(g.shape, p.dtype))
        if counts is not None:
            g = np.multiply(g, counts[:, None], out=mem.empty((len(p), 1), p.dtype))
        gx = gt = None
        if needs[0]:
            gx = mem.empty(p.shape, p.dtype)
            if t.ndim == 2:
                np.multiply(p, np.sum(t, axis=1, keepdims=True), out=gx)
                gx -= t
            else:
                gx[...] = p
                gx[np.arange(len(t)), t] -= 1
            gx *= g
            gx = _unrows(gx, shape)
        if needs[1]:
            gt = _unrows(np.multiply(log_p, -g, out=mem.empty(p.shape, p.dtype)), shape)
        return gx, gt


def softmax_cross_entropy(
    logits: Operand, labels: Operand, reduction: str = "mean", ignore_index: int | None = None
) -> Tensor:
    """Cross-entropy between the softmax of logits and labels.

    Parameters
    ----------
    logits : Tensor (N, C) or (N, C, D...)
        Scores of C classes, not normalised; float32 or float64.
    labels : integers (N,) or (N, D...), or probabilities of the shape of `logits`
        The class of each sample, or how probable each class is.
    reduction : {"mean", "sum", "none"}
        Over all labels; "none" keeps one loss for each.
    ignore_index : int, optional
        Integer labels of this value count neither in the loss nor in the mean.  PyTorch's default
        of -100 is not taken over: without it, every label must name a class.

    Returns
    -------
    Tensor
        0-d, or of the shape of integer labels for "none".  The mean of no label at all is NaN.

    Raises
    ------
    ShapeError, DtypeError
        Labels do not fit the logits, or are floats without a class axis.
    ArgumentError
        A label out of range, or an unknown reduction.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.3.

    Examples
    --------
    >>> import tinygraph as tg
    >>> loss = tg.softmax_cross_entropy([[0.0, 0.0]], [1])
    >>> round(loss.item(), 4)  # log(2): both classes are equally likely
    0.6931
    """
    require_reduction("softmax_cross_entropy", reduction)
    return SoftmaxCrossEntropy(reduction, ignore_index)(logits, labels)
