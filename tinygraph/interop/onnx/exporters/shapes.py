"""Exporters of ops that move elements: reshape and its kin, transpose, expand, concatenate, pad."""

from __future__ import annotations

import numpy as np

from tinygraph.engine import Shape, Tensor, normalize_axes
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.shaping.concatenate import Concatenate, Stack
from tinygraph.ops.shaping.expand import Expand
from tinygraph.ops.shaping.pad import Pad
from tinygraph.ops.shaping.reshape import Flatten, Reshape, Squeeze, Unflatten, Unsqueeze
from tinygraph.ops.shaping.transpose import Transpose


def reshaped(w: Writer, x: str, shape: Shape) -> str:
    """`x` in a shape; one size that follows the batch becomes -1 (batch.py)."""
    return w.node("Reshape", x, w.ints(*shape), allowzero=1 if 0 in shape else None)


@exporter(Reshape, Unflatten)
def reshape(w: Writer, node: Tensor, x: str) -> str:
    return reshaped(w, x, node.shape)


@exporter(Flatten)
def flatten(w: Writer, node: Tensor, x: str) -> str:
    first, last = node.op._span(node.inputs[0].ndim)
    if first == 1 and last == node.inputs[0].ndim - 1:
        return w.node("Flatten", x, axis=1)
    return reshaped(w, x, node.shape)


@exporter(Squeeze)
def squeeze(w: Writer, node: Tensor, x: str) -> str:
    before = node.inputs[0]
    axes = normalize_axes("squeeze", node.op.axis, before.ndim)
    gone = [a for a in axes if before.shape[a] == 1]
    return w.node("Squeeze", x, w.ints(*gone)) if gone else w.node("Identity", x)


@exporter(Unsqueeze)
def unsqueeze(w: Writer, node: Tensor, x: str) -> str:
    axes = node.op._axes(node.inputs[0].ndim)
    return w.node("Unsqueeze", x, w.ints(*axes)) if axes else w.node("Identity", x)


@exporter(Transpose)
def transpose(w: Writer, node: Tensor, x: str) -> str:
    order = node.op._order(node.ndim)
    return w.node("Transpose", x, perm=order) if order else w.node("Identity", x)


@exporter(Expand)
def expand(w: Writer, node: Tensor, x: str) -> str:
    """Sizes that stay are 1 there: so one of the batch is not written down."""
    shape = node.inputs[0].shape
    if 0 in node.shape and 0 not in shape:  # runtimes do not expand 1 to 0
        return w.constant(np.zeros(node.shape), node.dtype)
    own = (*(0,) * (node.ndim - len(shape)), *shape)
    sizes = [1 if before == size else size for before, size in zip(own, node.shape, strict=True)]
    return w.node("Expand", x, w.ints(*sizes))


@exporter(Concatenate)
def concatenate(w: Writer, node: Tensor, *parts: str) -> str:
    return w.node("Concat", *parts, axis=node.op.axis % node.ndim)


@exporter(Stack)
def stack(w: Writer, node: Tensor, *parts: str) -> str:
    axis = node.op.axis % node.ndim
    place = w.ints(axis)
    return w.node("Concat", *[w.node("Unsqueeze", x, place) for x in parts], axis=axis)


@exporter(Pad)
def pad(w: Writer, node: Tensor, x: str) -> str:
    widths = node.op._each(node.ndim)
    if not widths or not node.ndim:
        return w.node("Identity", x)
    both = np.array(widths, np.int64).T.reshape(-1)  # all before, then all after
    return w.node("Pad", x, w.ints(*both), w.constant(node.op.value, node.dtype))
