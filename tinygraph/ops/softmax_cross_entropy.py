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

from tinygraph.errors import ArgumentError, DtypeError, ShapeError, explain, nearest
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.softmax import translated
from tinygraph.shapes import Array, Shape, Spec, require_float
from tinygraph.tensor import Operand, Tensor

REDUCTIONS = ("mean", "sum", "none")


def require_reduction(op: str, reduction: str) -> str:
    """The reduction of a loss, or an error that names the three."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            explain(op, "reduction", "'mean', 'sum' or 'none'", repr(reduction),
                    nearest(str(reduction), REDUCTIONS))
        )  # fmt: skip
    return reduction


def _rows(x: Array) -> Array:
    """(N, C, D...) as (M, C), one row a label; a copy only where there are further axes."""
    return x if x.ndim == 2 else np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _unrows(rows: Array, shape: Shape) -> Array:
    """The inverse of `_rows`."""
    if len(shape) == 2:
        return rows
    return np.moveaxis(rows.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(Op):
    reduction: str = "mean"
    ignore_index: int | None = None

    def infer(self, x: Spec, labels: Spec) -> Spec:
        require_float(self.name, logits=x)
        if x.ndim < 2 or not x.shape[1]:
            raise ShapeError(
                explain(self.name, "logits", "(N, C) or (N, C, D...) with at least one class", x.shape)
            )
        each = (x.shape[0], *x.shape[2:])
        if labels.dtype.kind in "iu":
            if labels.shape != each:
                raise ShapeError(
                    explain(self.name, "labels", f"shape {each}, one for each row of logits {x.shape}",
                            labels.shape, "integer labels name a class; they have no class axis")
                )  # fmt: skip
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
        if labels.dtype.kind == "f" or not labels.size:
            return
        classes = x.shape[1]
        if 0 <= labels.min() and labels.max() < classes:
            return
        bad = (labels < 0) | (labels >= classes)
        if self.ignore_index is not None:
            bad &= labels != self.ignore_index
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ArgumentError(
                explain(self.name, "labels", f"class numbers from 0 to {classes - 1}",
                        f"{labels[where]} at index {where}",
                        "number the classes from 0, or pass ignore_index")
            )  # fmt: skip

    def forward(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        log_p = translated(mem, _rows(x), 1)  # (M, C)
        p = np.exp(log_p, out=mem.empty(log_p.shape, x.dtype))
        total = np.sum(p, axis=1, keepdims=True, out=mem.empty((len(p), 1), x.dtype))
        p /= total
        log_p -= np.log(total, out=total)
        loss = mem.empty((len(p),), x.dtype)
        if labels.dtype.kind == "f":
            t = _rows(labels)
            np.einsum("mc,mc->m", t, log_p, out=loss)
            count, mask = len(p), None
        else:
            t = labels.reshape(-1)
            mask = None if self.ignore_index is None else t != self.ignore_index
            t = t if mask is None else np.where(mask, t, 0)
            loss[...] = log_p[np.arange(len(t)), t]
            if mask is not None:
                loss *= mask
            count = len(t) if mask is None else np.count_nonzero(mask)
        np.negative(loss, out=loss)
        saved = (x.shape, p, t, log_p if len(mem.needs) > 1 and mem.needs[1] else None, mask, count)
        if self.reduction == "none":
            return loss.reshape(x.shape[0], *x.shape[2:]), saved
        y = np.sum(loss, axis=0, out=mem.empty((), x.dtype))
        if self.reduction == "mean":
            y /= x.dtype.type(count)  # no label at all: 0 / 0 is NaN
        return y, saved

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        shape, p, t, log_p, mask, count = saved
        g = gy.reshape(-1, 1)  # (M, 1), or (1, 1) for a reduced loss
        if self.reduction == "mean":
            g = np.divide(g, p.dtype.type(count), out=mem.empty(g.shape, p.dtype))
        if mask is not None:
            g = np.multiply(g, mask[:, None], out=mem.empty((len(p), 1), p.dtype))
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

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if not all(carries):
            return None
        if self.reduction == "none":
            return "map"
        # With ignore_index the mean's scale depends on all labels: unknown before the batch is cut.
        return None if self.reduction == "mean" and self.ignore_index is not None else "sum"

    def tile_scale(self, samples: int, batch: int) -> float:
        return samples / batch if self.reduction == "mean" else 1.0


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
