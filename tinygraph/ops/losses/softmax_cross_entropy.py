"""Softmax cross-entropy: how badly logits predict a class, in one op.

    N samples, C classes, D... further axes (pixels); x (N, C, D...)
    labels t: integers (N, D...), or probabilities (N, C, D...)

    p       = softmax of x over the classes, computed from x - max(x)
    loss[n] = -log p[n, t[n]]              or -sum over c of t[n, c] * log p[n, c]
    gx[n]   = gloss[n] * (p[n] - onehot(t[n]))    or gloss[n] * (p[n] * sum of t[n] - t[n])
    gt[n]   = -gloss[n] * log p[n]                for probabilities

The mean is over all labels that are not `ignore_index`.  Of integer labels a share s may be spread
over all classes, which takes the same pass:

    smoothing  loss[n] = -(1 - s) * log p[n, t[n]] - s / C * sum over c of log p[n, c]
    smoothing  gx[n]   = gloss[n] * (p[n] - (1 - s) * onehot(t[n]) - s / C)

Source: Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990;
Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.3.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, frozen
from tinygraph.cuda import blocks, op_kernel
from tinygraph.engine import Array, Memory, Operand, Shape, Spec, Tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import MOST_BLOCKS, THREADS, as_int64, sum_over, sums
from tinygraph.ops.losses.losses import LabelLoss, label_loss
from tinygraph.ops.reductions.softmax import translated

_ONE_BLOCK = 512  # threads of a launch that is a single block


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
    smoothing: float = 0.0  # of integer labels

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
        total = sums(mem, p, 1)
        p /= total
        log_p -= np.log(total, out=total)
        loss = mem.empty((len(p),), x.dtype)
        if labels.dtype.kind == "f":
            t, counts, count = _rows(labels), None, len(p)
            sum_over((1,), loss[:, None], t, log_p)
        else:
            t, counts, count = self.kept(labels.reshape(-1))
            loss[...] = log_p[mem.constant(np.arange(len(t))), t]
            if self.smoothing:
                loss *= 1 - self.smoothing
                loss += sums(mem, log_p, 1)[:, 0] * x.dtype.type(self.smoothing / x.shape[1])
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
                np.multiply(p, sums(mem, t, 1), out=gx)
                gx -= t
            else:
                np.subtract(p, p.dtype.type(self.smoothing / shape[1]), out=gx)
                gx[mem.constant(np.arange(len(t))), t] -= p.dtype.type(1 - self.smoothing)
            gx *= g
            if counts is not None:
                gx[~counts] = 0  # whatever their logits are
            gx = _unrows(gx, shape)
        if needs[1]:
            gt = _unrows(np.multiply(log_p, -g, out=mem.empty(p.shape, p.dtype)), shape)
        return gx, gt

    def forward_kernel(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        rows, weights = _Rows.of(x), None
        kept: tuple[Array, ...]
        ignored: tuple[float, ...] = ()
        maxima, totals = mem.empty((rows.number,), x.dtype), mem.empty((rows.number,), x.dtype)
        none, count = mem.empty((0,), x.dtype), mem.empty((0,), np.int64)
        if labels.dtype.kind == "f":
            t, weights = labels, mem.empty((rows.number,), x.dtype)
            function, kept = "probabilities_forward", (maxima, totals, weights)
        else:
            t = as_int64(mem, labels)
            function, kept = "labels_forward", (maxima, totals)
            ignored = *self.ignored, *self._shares(x)
        if self.reduction == "none":
            loss = mem.empty((x.shape[0], *x.shape[2:]), x.dtype)
            rows.launch(function, rows.dealt(), (x, t, *kept, loss, none, count), 0, *ignored)
        else:
            dealt = rows.dealt_for_a_sum()

            def leave(sums: Array, counts: Array, divides: int) -> None:
                arrays = x, t, *kept, none, sums, counts
                rows.launch(function, dealt, arrays, divides, *ignored)

            loss, count = self.total(mem, x.dtype, dealt.grid, leave)
        saved = (x, t, maxima, totals, weights, count)
        return loss, saved if True in mem.needs else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, t, maxima, totals, weights, count = saved
        rows, each = _Rows.of(x), int(self.reduction == "none")
        gx, gt = (mem.empty(x.shape if needed else (0,), x.dtype) for needed in needs)
        arrays, dealt = (gy, count, x, t, maxima, totals), rows.dealt()
        if weights is None:
            settings = each, *self.ignored, *self._shares(x)
            rows.launch("labels_backward", dealt, (*arrays, gx), *settings)
        else:
            rows.launch("probabilities_backward", dealt, (*arrays, weights, gx, gt), each)
        return gx if needs[0] else None, gt if needs[1] else None

    def _shares(self, x: Array) -> tuple[float, float]:
        """What a label's own class has for itself, and what each class has."""
        return 1 - self.smoothing, self.smoothing / x.shape[1]


class _Dealt(NamedTuple):
    """Blocks, threads of a block, and how many of these own a row; see the .cu file."""

    grid: int
    block: int
    threads: int


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

    def dealt(self) -> _Dealt:
        """All rows at a time, over as many blocks as they take."""
        if self.positions > 1:  # neighbours in memory shall be neighbouring threads
            threads = 1
        else:
            threads = 8 if self.classes <= 64 else 32 if self.classes <= 1024 else THREADS
        return _Dealt(blocks(self.number, THREADS // threads), THREADS, threads)

    def dealt_for_a_sum(self) -> _Dealt:
        """One block where it has few elements to read, as each further one takes a second launch.

        One that reads 32 elements with each thread takes about 2 us, as does a launch: estimated
        from how long loads take, not measured.
        """
        if self.classes <= 1024 and self.number * self.classes <= 32 * _ONE_BLOCK:
            threads = 1 if self.positions > 1 or self.classes <= 16 else 8
            return _Dealt(1, _ONE_BLOCK, threads)
        dealt = self.dealt()
        return dealt._replace(grid=max(min(dealt.grid, MOST_BLOCKS), 1))

    def launch(
        self, function: str, dealt: _Dealt, arrays: tuple[Array, ...], *settings: float
    ) -> None:
        """One group of threads for each row; nothing for none."""
        if not dealt.grid:
            return
        macros = {"BLOCK_THREADS": dealt.block} if dealt.block != THREADS else {}
        macros["ROW_THREADS"] = dealt.threads
        kernel = op_kernel("softmax_cross_entropy", function, self.dtype, **macros)
        kernel(dealt.grid, dealt.block, *arrays, *self[:3], *settings)


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
