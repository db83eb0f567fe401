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

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.cuda import blocks, op_kernel
from tinygraph.errors import ArgumentError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.shared.axes import as_int64
from tinygraph.ops.shared.launch import THREADS
from tinygraph.ops.shared.losses import LabelLoss, label_loss
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


@frozen
class SoftmaxCrossEntropy(LabelLoss, Op):
    scores: ClassVar[str] = "logits"
    labels_are: ClassVar[str] = "integers of shape {each} or probabilities of shape {x}"

    def infer(self, x: Spec, labels: Spec) -> Spec:
        if labels.dtype.kind != "f" or labels.shape != x.shape or x.ndim < 2 or not x.shape[1]:
            return super().infer(x, labels)
        require_float(self.name, logits=x, labels=labels)
        if self.ignore_index is not None:
            raise ArgumentError(
                self.name, "ignore_index", "None with probabilities", self.ignore_index
            )
        return self.result((x.shape[0], *x.shape[2:]), x.dtype)

    def check(self, x: Array, labels: Array) -> None:
        if labels.dtype.kind != "f":
            super().check(x, labels)

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
            loss[...] = log_p[mem.constant(np.arange(len(t))), t]
            if counts is not None:
                loss[~counts] = 0
        np.negative(loss, out=loss)
        saved = (x.shape, p, t, log_p if mem.needs[1] else None, counts, count)
        if self.reduction == "none":
            loss = loss.reshape(x.shape[0], *x.shape[2:])
        return self.reduce(mem, loss, count), saved if True in mem.needs else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        shape, p, t, log_p, counts, count = saved
        g = gy.reshape(-1, 1)  # (M, 1), or (1, 1) for a reduced loss
        if self.reduction == "mean":
            g = np.divide(g, p.dtype.type(count), out=mem.empty(g.shape, p.dtype))
        gx = gt = None
        if needs[0]:
            gx = mem.empty(p.shape, p.dtype)
            if t.ndim == 2:
                np.multiply(p, np.sum(t, axis=1, keepdims=True), out=gx)
                gx -= t
            else:
                gx[...] = p
                gx[mem.constant(np.arange(len(t))), t] -= 1
            gx *= g
            if counts is not None:
                gx[~counts] = 0  # whatever their logits are
            gx = _unrows(gx, shape)
        if needs[1]:
            gt = _unrows(np.multiply(log_p, -g, out=mem.empty(p.shape, p.dtype)), shape)
        return gx, gt

    def forward_kernel(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        rows, t, weights = _Rows.of(x), labels, None
        loss = mem.empty((x.shape[0], *x.shape[2:]), x.dtype)
        maxima, totals = mem.empty((rows.number,), x.dtype), mem.empty((rows.number,), x.dtype)
        if labels.dtype.kind == "f":
            weights = mem.empty((rows.number,), x.dtype)
            rows.launch("probabilities_forward", (x, t, loss, maxima, totals, weights))
        else:
            t = as_int64(mem, labels)
            rows.launch("labels_forward", (x, t, loss, maxima, totals), *self.ignored)
        count = mem.empty((0,), np.int64)
        if self.reduction != "none":
            ignores, ignore_index = self.ignored
            kernel = op_kernel("softmax_cross_entropy", "sum_of_rows", x.dtype)
            counted = t if ignores else count  # none: all of them count
            loss, count = self.total(mem, kernel, (loss, counted), rows.number, ignore_index)
        saved = (x, t, maxima, totals, weights, count)
        return loss, saved if True in mem.needs else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, t, maxima, totals, weights, count = saved
        rows, each = _Rows.of(x), int(self.reduction == "none")
        gx, gt = (mem.empty(x.shape if needed else (0,), x.dtype) for needed in needs)
        arrays = gy, count, x, t, maxima, totals
        if weights is None:
            rows.launch("labels_backward", (*arrays, gx), each, *self.ignored)
        else:
            rows.launch("probabilities_backward", (*arrays, weights, gx, gt), each)
        return gx if needs[0] else None, gt if needs[1] else None


class _Rows(NamedTuple):
    """The rows of logits (N, C, D...), one for each label, and the kernels that walk over them."""

    number: int
    classes: int
    positions: int  # the product of the further axes; a row's classes lie so far apart
    dtype: np.dtype[Any]

    @staticmethod
    def of(x: Array) -> _Rows:
        positions = math.prod(x.shape[2:])
        return _Rows(x.shape[0] * positions, x.shape[1], positions, x.dtype)

    @property
    def threads(self) -> int:
        """How many threads own a row: neighbours in memory shall be neighbouring threads."""
        if self.positions > 1:
            return 1
        return 32 if self.classes <= 1024 else THREADS

    def launch(self, function: str, arrays: tuple[Array, ...], *settings: int) -> None:
        """One group of threads for each row; nothing for none."""
        if self.number:
            stem, threads = "softmax_cross_entropy", self.threads
            kernel = op_kernel(stem, function, self.dtype, ROW_THREADS=threads)
            grid = blocks(self.number, THREADS // threads)
            kernel(grid, THREADS, *arrays, *self[:3], *settings)


@label_loss
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

    Raises
    ------
    ShapeError, DtypeError
        Labels do not fit the logits, or are floats without a class axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> loss = tg.softmax_cross_entropy([[0.0, 0.0]], [1])
    >>> round(loss.item(), 4)  # log(2): both classes are equally likely
    0.6931
    """
    return SoftmaxCrossEntropy(reduction, ignore_index)(logits, labels)
