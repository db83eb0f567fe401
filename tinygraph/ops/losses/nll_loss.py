"""Negative log-likelihood: what the true class lacks in log-probability.

    N samples, C classes, D... further axes (pixels); x (N, C, D...), labels t (N, D...)

    loss[n] = -x[n, t[n]]
    gx[n]   = -gloss[n] at class t[n], 0 elsewhere

The mean is over all labels that are not `ignore_index`; weights of classes are multiplied, and the
mean divides by their sum (weighted.py).  With x = log_softmax(logits) this is
softmax_cross_entropy(logits, t), in two ops.

Source: Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, sections 5.5 and 6.2.2.3.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import InOut, op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Shape, Tensor
from tinygraph.ops.common import THREADS, as_int64, for_each, grid_of
from tinygraph.ops.elementwise.arithmetic import mul
from tinygraph.ops.losses.losses import LabelLoss, label_loss
from tinygraph.ops.losses.weighted import (
    beside,
    class_weight,
    label_weights,
    of_one_sample,
    reduced,
)
from tinygraph.ops.reductions.sum import sum


def _at(t: Array) -> tuple[Array, ...]:
    """The index of the labelled element of each row: x[_at(t)] has the shape of t."""
    samples, *rest = np.ogrid[tuple([slice(n) for n in t.shape])]
    return (samples, t, *rest)


@frozen
class NllLoss(LabelLoss, Op):
    scores: ClassVar[str] = "log_probabilities"

    def forward(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        t, counts, count = self.kept(labels)
        loss = np.negative(x[_at(t)], out=mem.empty(t.shape, x.dtype))
        if counts is not None:
            loss[~counts] = 0
        saved = (x.shape, t, counts, count)
        return self.reduce(mem, loss, count), saved if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        shape, t, counts, count = saved
        g = np.negative(gy, out=mem.empty(gy.shape, gy.dtype))
        if self.reduction == "mean":
            g /= gy.dtype.type(count)
        if counts is not None:
            each, g = g, mem.empty(t.shape, gy.dtype)
            g[...] = each
            g[~counts] = 0  # also where `each` is infinite: the mean of no label at all
        gx = mem.zeros(shape, gy.dtype)
        gx[_at(t)] = g
        return gx, None

    def forward_kernel(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        t = as_int64(mem, labels)
        if self.reduction == "none":
            loss, count = mem.empty(t.shape, x.dtype), mem.empty((0,), np.int64)
            kernel = op_kernel("nll_loss", "nll_loss_each", x.dtype)
            for_each(kernel, t.size, x, t, loss, t.size, *self._classes(x.shape))
        else:
            kernel = op_kernel("nll_loss", "nll_loss_sum", x.dtype)
            grid, sizes = max(grid_of(t.size), 1), (t.size, *self._classes(x.shape))

            def leave(*sums: Any) -> None:
                *arrays, divides = sums
                kernel(grid, THREADS, x, t, *arrays, *sizes, divides)

            loss, count = self.total(mem, x.dtype, grid, leave)
        return loss, (x.shape, t, count) if mem.needs[0] else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        shape, t, count = saved
        gx, each = mem.zeros(shape, gy.dtype), int(self.reduction == "none")
        kernel = op_kernel("nll_loss", "nll_loss_backward", gy.dtype)
        for_each(kernel, t.size, gy, count, t, InOut(gx), t.size, *self._classes(shape), each)
        return gx, None

    def _classes(self, shape: Shape) -> tuple[int, ...]:
        """How many classes and positions, whether labels are ignored and which: for the kernels."""
        return shape[1], math.prod(shape[2:]), *self.ignored


@label_loss
def nll_loss(
    log_probabilities: Operand,
    labels: Operand,
    weight: Operand | None = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of labels under log-probabilities, as `log_softmax` gives them.

    Parameters
    ----------
    log_probabilities : Tensor (N, C) or (N, C, D...), or (C) of one sample
        Logarithms of the probabilities of C classes; float32 or float64.
    labels : integers (N,) or (N, D...), or one
        The class of each sample.
    weight : Tensor (C), optional
        How much each class counts, in the loss and in the mean.
    ignore_index : int, optional
        Labels of this value count neither in the loss nor in the mean.

    Returns
    -------
    Tensor
        0-d, or of the shape of the labels for "none".  The mean of no label at all is NaN.

    Raises
    ------
    ShapeError, DtypeError
        Labels do not fit the log-probabilities, or are not integers; `weight` is not (C).

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nll_loss([[-1.0, -0.5], [-3.0, -0.25]], [0, 1]).item()
    0.625
    """
    x, t = beside(log_probabilities, labels, weight)
    if x.ndim == 1:
        return of_one_sample(nll_loss, x, t, weight, ignore_index, reduction)
    if weight is None:
        return NllLoss(reduction, ignore_index)(x, t)
    losses = NllLoss("none", ignore_index)(x, t)
    of_labels = label_weights(class_weight("nll_loss", weight, x), t, ignore_index)
    return reduced("nll_loss", mul(losses, of_labels), reduction, sum(of_labels))
