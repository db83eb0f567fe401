"""Losses times their weights, by ops that exist.

l        the losses of elements, or of rows that a label t names a class for
w        a weight for each element, or w[n] = weight[t[n]] and 0 where a label does not count

loss = sum of l * w / M ("mean" over M elements), sum of l * w / sum of w ("mean" over labels),
       the sum ("sum"), l * w ("none")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygraph.base import DeviceError, ShapeError, one_of
from tinygraph.engine import Operand, Tensor, as_tensor, broadcast_shapes
from tinygraph.ops.common import astype, device_of
from tinygraph.ops.elementwise.arithmetic import div
from tinygraph.ops.elementwise.comparison import not_equal
from tinygraph.ops.elementwise.where import where
from tinygraph.ops.losses.losses import REDUCTIONS
from tinygraph.ops.reductions.mean import mean
from tinygraph.ops.reductions.sum import sum
from tinygraph.ops.shaping.embedding import embedding
from tinygraph.ops.shaping.reshape import reshape


def reduced(op: str, losses: Tensor, reduction: str, divisor: Tensor | None = None) -> Tensor:
    """Single losses reduced; a mean divides by `divisor`, or by their number."""
    one_of(op, "reduction", reduction, REDUCTIONS)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    return mean(losses) if divisor is None else div(sum(losses), divisor)


def as_weight(op: str, argument: str, weight: Operand, losses: Tensor) -> Tensor:
    """A weight that broadcasts to the losses, where they are and in their dtype."""
    w = _like(op, argument, losses, weight)
    if broadcast_shapes(op, losses.shape, w.shape) != losses.shape:
        raise ShapeError(op, argument, f"what broadcasts to {losses.shape}", w.shape)
    return w


def class_weight(op: str, weight: Operand, scores: Tensor) -> Tensor:
    """A weight for each class of scores (N, C, D...)."""
    w = _like(op, "weight", scores, weight)
    if w.shape != scores.shape[1:2]:
        expected = f"shape {scores.shape[1:2]}, a number for each class"
        raise ShapeError(op, "weight", expected, w.shape)
    return w


def label_weights(weight: Tensor, labels: Tensor, ignore_index: int | None) -> Tensor:
    """The weight (C) of the class that each label names; 0 where a label does not count."""
    t, column = astype(labels, "int64"), reshape(weight, (-1, 1))
    if ignore_index is None:
        return reshape(embedding(t, column), t.shape)
    counts = not_equal(t, ignore_index)
    of_labels = reshape(embedding(where(counts, t, 0), column), t.shape)
    return where(counts, of_labels, 0.0)


def beside(x: Operand, y: Operand, weight: Operand | None = None) -> tuple[Tensor, Tensor]:
    """Two operands as tensors, each of its own dtype; arrays go where a tensor among all is."""
    if not isinstance(x, Tensor):
        x = as_tensor(x, device=device_of(x, y, weight))
    return x, as_tensor(y, device=x.device)


def of_one_sample(loss: Callable[..., Tensor], x: Tensor, t: Tensor, *settings: Any) -> Tensor:
    """A loss of scores (C) with one label, or (C) probabilities: that of a batch of one."""
    one_label = t.size == 1 and t.ndim <= 1 and t.dtype.kind != "f"
    row = reshape(t, (1,) if one_label else (1, *t.shape))
    y = loss(reshape(x, (1, -1)), row, *settings)
    return reshape(y, ()) if y.ndim else y


def _like(op: str, argument: str, like: Tensor, weight: Operand) -> Tensor:
    w = as_tensor(weight, device=like.device)
    if w.device is not like.device:
        move = f"to({str(like.device)!r})"
        expected, way_out = f"one on {like.device}", f"{argument}.{move}; of a layer, loss.{move}"
        raise DeviceError(op, argument, expected, f"on {w.device}", way_out)
    return w if w.dtype == like.dtype else astype(w, like.dtype)
