"""Exporters of losses: what a training minimises can be in a file as well."""

from __future__ import annotations

from tinygraph.engine import Tensor
from tinygraph.interop.onnx.exporters.indexing import as_indices
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.losses.binary_cross_entropy import LOWEST_LOG, BinaryCrossEntropy
from tinygraph.ops.losses.binary_cross_entropy_with_logits import BinaryCrossEntropyWithLogits
from tinygraph.ops.losses.half_squared_error import HalfSquaredError
from tinygraph.ops.losses.huber_loss import HuberLoss
from tinygraph.ops.losses.l1_loss import L1Loss
from tinygraph.ops.losses.mse_loss import MseLoss
from tinygraph.ops.losses.nll_loss import NllLoss
from tinygraph.ops.losses.softmax_cross_entropy import SoftmaxCrossEntropy

KINDS = {"mean": "ReduceMean", "sum": "ReduceSum"}


def as_one(w: Writer, node: Tensor, losses: str) -> str:
    """Single losses as the reduction says: without axes all are reduced."""
    reduction = node.op.reduction
    return losses if reduction == "none" else w.node(KINDS[reduction], losses, keepdims=0)


@exporter(MseLoss)
def mse_loss(w: Writer, node: Tensor, x: str, y: str) -> str:
    rest = w.node("Sub", x, y)
    return as_one(w, node, w.node("Mul", rest, rest))


@exporter(HalfSquaredError)
def half_squared_error(w: Writer, node: Tensor, x: str, y: str) -> str:
    rest = w.node("Sub", x, y)
    squares = w.node("Mul", rest, rest)
    return as_one(w, node, w.node("Mul", squares, w.constant(0.5, node.dtype)))


@exporter(L1Loss)
def l1_loss(w: Writer, node: Tensor, x: str, y: str) -> str:
    return as_one(w, node, w.node("Abs", w.node("Sub", x, y)))


@exporter(HuberLoss)
def huber_loss(w: Writer, node: Tensor, x: str, y: str) -> str:
    """c * (d - c / 2), where c is d brought into [-delta, delta]."""
    rest, delta = w.node("Sub", x, y), node.op.delta
    bounds = w.constant(-delta, node.dtype), w.constant(delta, node.dtype)
    clipped = w.node("Clip", rest, *bounds)
    half = w.node("Mul", clipped, w.constant(0.5, node.dtype))
    return as_one(w, node, w.node("Mul", clipped, w.node("Sub", rest, half)))


@exporter(BinaryCrossEntropy)
def binary_cross_entropy(w: Writer, node: Tensor, x: str, y: str) -> str:
    one, least = w.constant(1, node.dtype), w.constant(LOWEST_LOG, node.dtype)
    log_x = w.node("Max", w.node("Log", x), least)
    log_rest = w.node("Max", w.node("Log", w.node("Sub", one, x)), least)
    terms = w.node("Mul", y, log_x), w.node("Mul", w.node("Sub", one, y), log_rest)
    return as_one(w, node, w.node("Neg", w.node("Add", *terms)))


@exporter(BinaryCrossEntropyWithLogits)
def binary_cross_entropy_with_logits(w: Writer, node: Tensor, x: str, y: str) -> str:
    """softplus(x) - x * y."""
    return as_one(w, node, w.node("Sub", w.node("Softplus", x), w.node("Mul", x, y)))


# ---- of labels ----------------------------------------------------------------------------------


@exporter(NllLoss)
def nll_loss(w: Writer, node: Tensor, x: str, labels: str) -> str:
    return of_labels(w, node, "NegativeLogLikelihoodLoss", x, labels, node.op.reduction)


@exporter(SoftmaxCrossEntropy)
def softmax_cross_entropy(w: Writer, node: Tensor, x: str, labels: str) -> str:
    op = node.op
    if node.inputs[1].dtype.kind == "f":
        terms = w.node("Mul", labels, w.node("LogSoftmax", x, axis=1))
        return as_one(w, node, w.node("Neg", w.node("ReduceSum", terms, w.ints(1), keepdims=0)))
    if not op.smoothing:
        return of_labels(w, node, "SoftmaxCrossEntropyLoss", x, labels, op.reduction)
    return smoothed(w, node, w.node("LogSoftmax", x, axis=1), labels)


def of_labels(w: Writer, node: Tensor, kind: str, x: str, labels: str, reduction: str) -> str:
    """A loss operator of scores (N, C, D...) and integer labels."""
    t = as_indices(w, labels, node.inputs[1])
    return w.node(kind, x, t, reduction=reduction, ignore_index=node.op.ignore_index)


def smoothed(w: Writer, node: Tensor, log_p: str, labels: str) -> str:
    """(1 - s) times the loss of the label, and s times the mean of those of all classes."""
    op, classes = node.op, node.inputs[0].shape[1]
    named = of_labels(w, node, "NegativeLogLikelihoodLoss", log_p, labels, "none")
    named = w.node("Mul", named, w.constant(1 - op.smoothing, node.dtype))
    every = w.node("ReduceSum", log_p, w.ints(1), keepdims=0)
    every = w.node("Mul", every, w.constant(op.smoothing / classes, node.dtype))
    losses = w.node("Sub", named, every)
    if op.ignore_index is None:
        return as_one(w, node, losses)
    ignored = w.constant(op.ignore_index, node.inputs[1].dtype)
    counts = w.node("Not", w.node("Equal", labels, ignored))
    losses = w.node("Where", counts, losses, w.constant(0, node.dtype))
    if op.reduction != "mean":
        return as_one(w, node, losses)
    number = w.node("ReduceSum", w.cast(counts, node.dtype), keepdims=0)
    return w.node("Div", w.node("ReduceSum", losses, keepdims=0), number)
