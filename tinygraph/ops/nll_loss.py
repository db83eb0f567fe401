"""Negative log-likelihood: what the true class lacks in log-probability.

    N samples, C classes, D... further axes (pixels); x (N, C, D...), labels t (N, D...)

    loss[n] = -x[n, t[n]]
    gx[n]   = -gloss[n] at class t[n], 0 elsewhere

The mean is over all labels that are not `ignore_index`.  With x = log_softmax(logits) this is
softmax_cross_entropy(logits, t), in two ops.

Source: Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, sections 5.5 and 6.2.2.3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.cuda import InOut, op_kernel
from tinygraph.errors import DtypeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.launch import THREADS, for_each, grid_of
from tinygraph.ops.shared.losses import (
    LabelLoss,
    check_labels,
    reduce,
    require_classes,
    require_label_shape,
    require_reduction,
)
from tinygraph.shapes import Array, Shape, Spec
from tinygraph.tensor import Operand, Tensor


def _at(t: Array) -> tuple[Array, ...]:
    """The index of the labelled element of each row: x[_at(t)] has the shape of t."""
    samples, *rest = np.ogrid[tuple([slice(n) for n in t.shape])]
    return (samples, t, *rest)


@frozen
class NllLoss(LabelLoss, Op):
    def infer(self, x: Spec, labels: Spec) -> Spec:
        each = require_classes(self.name, "log_probabilities", x)
        if labels.dtype.kind not in "iu":
            raise DtypeError(
                self.name,
                "labels",
                f"integers of shape {each}",
                labels.dtype,
                "convert class numbers with labels.astype('int64')",
            )
        require_label_shape(self.name, "log_probabilities", x, labels)
        return Spec(each if self.reduction == "none" else (), x.dtype)

    def check(self, x: Array, labels: Array) -> None:
        check_labels(self.name, labels, x.shape[1], self.ignore_index)

    def forward(self, mem: Memory, x: Array, labels: Array) -> tuple[Array, Any]:
        t, counts, count = self.kept(labels)
        loss = np.negative(x[_at(t)], out=mem.empty(t.shape, x.dtype))
        if counts is not None:
            loss[~counts] = 0
        return reduce(mem, loss, self.reduction, count), (x.shape, t, counts, count)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
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
        t = labels
        if t.dtype != np.int64:
            t = mem.empty(labels.shape, np.int64)
            t[...] = labels
        no_count = mem.empty((0,), np.int64)
        if self.reduction == "none":
            loss = mem.empty(t.shape, x.dtype)
            kernel = op_kernel("nll_loss", "nll_loss_each", x.dtype)
            for_each(kernel, t.size, x, t, loss, t.size, *self._classes(x.shape))
            return loss, (x.shape, t, no_count)
        loss, count = self._total(mem, x, t)
        return loss, (x.shape, t, count if self.reduction == "mean" else no_count)

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        shape, t, count = saved
        gx, each = mem.zeros(shape, gy.dtype), int(self.reduction == "none")
        kernel = op_kernel("nll_loss", "nll_loss_backward", gy.dtype)
        for_each(kernel, t.size, gy, count, t, InOut(gx), t.size, *self._classes(shape), each)
        return gx, None

    def _classes(self, shape: Shape) -> tuple[int, int, int, int]:
        """How many classes and positions, whether labels are ignored and which: for the kernels."""
        ignored = (0, 0) if self.ignore_index is None else (1, self.ignore_index)
        return shape[1], math.prod(shape[2:]), *ignored

    def _total(self, mem: Memory, x: Array, t: Array) -> tuple[Array, Array]:
        """The sum or the mean of the losses, and how many labels count: both on the device."""
        total, count = mem.empty((), x.dtype), mem.empty((1,), np.int64)
        grid, mean = max(grid_of(t.size), 1), int(self.reduction == "mean")
        one = grid == 1  # then what that block sums up is the total
        sums = total if one else mem.empty((grid,), x.dtype)
        counts = count if one else mem.empty((grid,), np.int64)
        op_kernel("nll_loss", "nll_loss_sum", x.dtype)(
            grid, THREADS, x, t, sums, counts, t.size, *self._classes(x.shape), mean if one else 0
        )
        if not one:
            op_kernel("softmax_cross_entropy", "sum_of_partials", x.dtype)(
                1, THREADS, sums, counts, total, count, grid, mean
            )
        return total, count


def nll_loss(
    log_probabilities: Operand,
    labels: Operand,
    reduction: str = "mean",
    ignore_index: int | None = None,
) -> Tensor:
    """Negative log-likelihood of labels under log-probabilities, as `log_softmax` gives them.

    Parameters
    ----------
    log_probabilities : Tensor (N, C) or (N, C, D...)
        Logarithms of the probabilities of C classes; float32 or float64.
    labels : integers (N,) or (N, D...)
        The class of each sample.
    reduction : {"mean", "sum", "none"}
        Over all labels; "none" keeps one loss for each.
    ignore_index : int, optional
        Labels of this value count neither in the loss nor in the mean.  PyTorch's default of -100
        is not taken over: without it, every label must name a class.

    Returns
    -------
    Tensor
        0-d, or of the shape of the labels for "none".  The mean of no label at all is NaN.

    Raises
    ------
    ShapeError, DtypeError
        Labels do not fit the log-probabilities, or are not integers.
    ArgumentError
        A label out of range, or an unknown reduction.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 5.5.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nll_loss([[-1.0, -0.5], [-3.0, -0.25]], [0, 1]).item()
    0.625
    """
    require_reduction("nll_loss", reduction)
    return NllLoss(reduction, ignore_index)(log_probabilities, labels)
