"""Exporters of reductions, and of softmax and cumulative sums.

The axes are written as they are for this number of axes.  Where there are none, as of a tensor
without axes, nothing is reduced: left out, they would mean all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.interop.onnx.exporters.indexing import as_ordered
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.reductions.count_nonzero import CountNonzero, CountZero
from tinygraph.ops.reductions.cumsum import Cumsum
from tinygraph.ops.reductions.logsumexp import Logsumexp
from tinygraph.ops.reductions.max import Argmax, Argmin, Max, Min
from tinygraph.ops.reductions.mean import Mean
from tinygraph.ops.reductions.norm import Norm
from tinygraph.ops.reductions.prod import Prod
from tinygraph.ops.reductions.softmax import LogSoftmax, Softmax
from tinygraph.ops.reductions.sum import Sum
from tinygraph.ops.reductions.var import Std, Var

REDUCED: dict[Any, str] = {
    Sum: "ReduceSum",
    Prod: "ReduceProd",
    Mean: "ReduceMean",
    Max: "ReduceMax",
    Min: "ReduceMin",
    Logsumexp: "ReduceLogSumExp",
}


def over(w: Writer, kind: str, x: str, axes: tuple[int, ...], keepdims: bool) -> str:
    """A reduction over some axes, or over none."""
    if not axes:
        return x
    return w.node(kind, x, w.ints(*axes), keepdims=int(keepdims))


def reduced(w: Writer, node: Tensor, kind: str, x: str) -> str:
    """The reduction of a node over its axes."""
    axes, _ = node.op.over(node.inputs[0].shape)
    y = over(w, kind, x, axes, node.op.keepdims)
    return w.node("Identity", x) if y == x else y


@exporter(Sum, Prod, Mean, Logsumexp)
def total(w: Writer, node: Tensor, x: str) -> str:
    """Sums and products of integers have a dtype of their own: Cast first."""
    y = w.as_dtype(x, node.inputs[0], node.dtype)
    return reduced(w, node, REDUCED[type(node.op)], y)


@exporter(Max, Min)
def extreme(w: Writer, node: Tensor, x: str) -> str:
    ordered = as_ordered(w, x, node)
    y = reduced(w, node, REDUCED[type(node.op)], ordered)
    return y if ordered == x else w.cast(y, node.dtype)


@exporter(Argmax, Argmin)
def place_of_extreme(w: Writer, node: Tensor, x: str) -> str:
    """Without an axis the place in all of x, row by row."""
    op, x = node.op, as_ordered(w, x, node.inputs[0])
    kind = "ArgMin" if isinstance(op, Argmin) else "ArgMax"
    if op.axis is not None:
        axis = op.axis % node.inputs[0].ndim
        return w.node(kind, x, axis=axis, keepdims=int(op.keepdims))
    flat = w.node("Reshape", x, w.ints(-1))
    return w.node("Reshape", w.node(kind, flat, axis=0, keepdims=0), w.ints(*node.shape))


@exporter(CountNonzero, CountZero)
def count(w: Writer, node: Tensor, x: str) -> str:
    counted = w.as_dtype(x, node.inputs[0], np.dtype(bool))
    if isinstance(node.op, CountZero):
        counted = w.node("Not", counted)
    return reduced(w, node, "ReduceSum", w.cast(counted, np.int64))


@exporter(Norm)
def norm(w: Writer, node: Tensor, x: str) -> str:
    p = node.op.p
    if p in (1, 2):  # of which both are |x| where there are no axes
        kind, axes = "ReduceL1" if p == 1 else "ReduceL2", node.op.over(node.inputs[0].shape)[0]
        return reduced(w, node, kind, x) if axes else w.node("Abs", x)
    powers = w.node("Pow", w.node("Abs", x), w.constant(p, node.dtype))
    return w.node("Pow", reduced(w, node, "ReduceSum", powers), w.constant(1 / p, node.dtype))


@exporter(Var, Std)
def spread(w: Writer, node: Tensor, x: str) -> str:
    """The mean of squares of x - mean, with the divisor of these sizes."""
    op, shape = node.op, node.inputs[0].shape
    axes, _ = op.over(shape)
    rest = w.node("Sub", x, over(w, "ReduceMean", x, axes, keepdims=True))
    squares = over(w, "ReduceSum", w.node("Mul", rest, rest), axes, op.keepdims)
    y = w.node("Div", squares, w.constant(op._divisor(shape, axes), node.dtype))
    return w.node("Sqrt", y) if isinstance(op, Std) else y


@exporter(Cumsum)
def cumsum(w: Writer, node: Tensor, x: str) -> str:
    axis = w.constant(node.op.axis % node.ndim, np.int64)
    return w.node("CumSum", w.as_dtype(x, node.inputs[0], node.dtype), axis)


@exporter(Softmax)
def softmax(w: Writer, node: Tensor, x: str) -> str:
    return w.node("Softmax", x, axis=node.op.axis % node.ndim)


@exporter(LogSoftmax)
def log_softmax(w: Writer, node: Tensor, x: str) -> str:
    return w.node("LogSoftmax", x, axis=node.op.axis % node.ndim)
