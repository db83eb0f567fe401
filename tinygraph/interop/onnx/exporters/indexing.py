"""Exporters of ops that look elements up: indexing, gather, embedding, one-hot, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.engine import Tensor
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.reductions.sort import Argsort
from tinygraph.ops.shaping.embedding import Embedding
from tinygraph.ops.shaping.gather import Gather
from tinygraph.ops.shaping.getitem import ALL, Getitem, IndexArray, Slice
from tinygraph.ops.shaping.one_hot import OneHot

END = np.iinfo(np.int64).max  # of a slice that goes to the end
ORDERED = (np.float32, np.float64, np.int32, np.int64)  # dtypes that runtimes compare


def as_indices(w: Writer, x: str, node: Tensor) -> str:
    """Indices of any integer dtype in one that ONNX takes."""
    return x if node.dtype in (np.int32, np.int64) else w.cast(x, np.int64)


def as_ordered(w: Writer, x: str, node: Tensor) -> str:
    """Numbers of any dtype in one that runtimes compare."""
    if node.dtype in ORDERED:
        return x
    return w.cast(x, np.int64 if node.dtype.itemsize >= 4 else np.int32)


@exporter(Embedding)
def embedding(w: Writer, node: Tensor, indices: str, weight: str) -> str:
    return w.node("Gather", weight, as_indices(w, indices, node.inputs[0]), axis=0)


@exporter(Gather)
def gather(w: Writer, node: Tensor, x: str, indices: str) -> str:
    axis = node.op.axis % node.ndim
    return w.node("GatherElements", x, as_indices(w, indices, node.inputs[1]), axis=axis)


@exporter(OneHot)
def one_hot(w: Writer, node: Tensor, labels: str) -> str:
    """Of a single label, which OneHot does not take, a comparison with each class."""
    if node.ndim == 1:
        return w.cast(w.node("Equal", labels, w.ints(*range(node.op.classes))), np.int64)
    depth, values = w.constant(node.op.classes, np.int64), w.ints(0, 1)
    return w.node("OneHot", labels, depth, values, axis=-1)


@exporter(Argsort)
def argsort(w: Writer, node: Tensor, x: str) -> str:
    """TopK of all; of equals the lower index comes first, as here."""
    op, axis = node.op, node.op.axis % node.ndim
    ordered, count = as_ordered(w, x, node.inputs[0]), w.ints(node.shape[axis])
    settings = {"axis": axis, "largest": int(op.descending), "sorted": 1}
    return w.nodes_of("TopK", 2, ordered, count, **settings)[1]


# ---- x[index] -----------------------------------------------------------------------------------


@exporter(Getitem)
def getitem(w: Writer, node: Tensor, x: str) -> str:
    """Slices first, then what picks elements, then new axes."""
    source = node.inputs[0]
    entries = [e for e in node.op._aligned(source.shape) if e is not None]
    layout = node.op._layout(source.shape)
    y = sliced(w, x, entries)
    arrays = [entry for entry, _ in layout.picked if isinstance(entry, IndexArray)]
    if len(layout.picked) == len(arrays) == 1:
        ((entry, axis),) = layout.picked
        y = w.node("Gather", y, w.constant(entry.array, np.int64), axis=axis)
    elif arrays:
        y = picked_together(w, y, layout, source.ndim)
    else:
        for entry, axis in reversed(layout.picked):  # an axis goes: those before keep their places
            y = w.node("Gather", y, w.constant(entry, np.int64), axis=axis)
    joint = len(node.op._joint or ())
    new = [k for k, (_, axis) in enumerate(layout.kept) if axis < 0]
    places = [k if k < layout.at else k + joint for k in new]
    if places:
        y = w.node("Unsqueeze", y, w.ints(*places))
    return w.node("Identity", x) if y == x else y


def sliced(w: Writer, x: str, entries: list[Any]) -> str:
    """The slices of an index; the other axes stay whole."""
    cuts = [(a, e) for a, e in enumerate(entries) if isinstance(e, Slice) and e != ALL]
    if not cuts:
        return x
    starts, stops, steps = [], [], []
    for _, (start, stop, step) in cuts:
        forwards = step is None or step > 0
        steps.append(1 if step is None else step)
        starts.append((0 if forwards else END) if start is None else start)
        stops.append((END if forwards else -END) if stop is None else stop)
    axes = [axis for axis, _ in cuts]
    return w.node("Slice", x, w.ints(*starts), w.ints(*stops), w.ints(*axes), w.ints(*steps))


def picked_together(w: Writer, x: str, layout: Any, ndim: int) -> str:
    """Several index arrays, or one beside integers: their axes to the front, GatherND, and back."""
    axes = [axis for _, axis in layout.picked]
    kept = [axis for axis in range(ndim) if axis not in axes]
    if axes != list(range(len(axes))):
        x = w.node("Transpose", x, perm=[*axes, *kept])
    each = [e.array if isinstance(e, IndexArray) else np.array(e) for e, _ in layout.picked]
    indices = np.stack(np.broadcast_arrays(*each), -1)  # (joint axes..., how many are picked)
    y = w.node("GatherND", x, w.constant(indices, np.int64))
    joint = indices.ndim - 1
    before = sum(axis >= 0 for _, axis in layout.kept[: layout.at])
    if not before:
        return y
    front = range(joint, joint + before)
    behind = range(joint + before, joint + len(kept))
    return w.node("Transpose", y, perm=[*front, *range(joint), *behind])
