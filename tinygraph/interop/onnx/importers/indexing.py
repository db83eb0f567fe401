"""Elements by their places: gathered, scattered, sorted, selected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.engine import Array, Tensor
from tinygraph.interop.onnx.importers.integers import require_integers
from tinygraph.interop.onnx.nodes import Node, Value, array, axis_of, importer, ints, is_float

_EVERY = slice(None)


@importer("Gather", raw=True)
def gather(node: Node, x: Value, indices: Value) -> Value:
    axis = axis_of(node["axis"], x.ndim)
    floats = isinstance(x, Tensor) and is_float(x.dtype)
    if floats and axis == 0 and x.ndim == 2 and indices.ndim:
        counted = indices if isinstance(indices, Tensor) else _inside(array(indices), x.shape[0])
        return ops.embedding(counted, x)
    places = _inside(array(indices), x.shape[axis])
    if isinstance(x, Tensor):
        return ops.getitem(x, (*[_EVERY] * axis, places if places.ndim else int(places)))
    return np.take(array(x), places, axis)


def _inside(indices: Array, size: int) -> Array:
    """Indices counted from the front."""
    found = require_integers(indices).astype(np.int64)
    if found.size and (found.min() < -size or found.max() >= size):
        raise IndexError(f"an index outside of {size} elements")
    return np.where(found < 0, found + size, found)


@importer("GatherElements", raw=True)
def gather_elements(node: Node, x: Value, indices: Value) -> Value:
    axis = axis_of(node["axis"], x.ndim)
    places = _inside(array(indices), x.shape[axis])
    if isinstance(x, Tensor):
        sizes = zip(places.shape, x.shape, strict=True)
        if not all(n <= m for a, (n, m) in enumerate(sizes) if a != axis):
            raise node.refuse("indices", f"a shape within {x.shape}", places.shape)
        return ops.gather(x, axis, places)
    return np.take_along_axis(array(x), places, axis)


@importer("GatherND", raw=True)
def gather_nd(node: Node, x: Value, indices: Value) -> Value:
    found, batch = require_integers(array(indices)), node["batch_dims"] or 0
    index = _nd_index(found, x.shape, batch)
    return ops.getitem(x, index) if isinstance(x, Tensor) else array(x)[index]


def _nd_index(indices: Array, shape: tuple[int, ...], batch: int) -> tuple[Any, ...]:
    """An index into an array of `shape` for tuples of places on the last axis."""
    depth, outer = indices.shape[-1], indices.shape[:-1]
    if not 0 <= batch < min(indices.ndim, len(shape)) or batch + depth > len(shape):
        raise IndexError(f"places of {depth} numbers for shape {shape}")
    first = [
        np.arange(n).reshape([-1 if a == i else 1 for a in range(len(outer))])
        for i, n in enumerate(shape[:batch])
    ]
    rest = [_inside(indices[..., i], shape[batch + i]) for i in range(depth)]
    return tuple([np.broadcast_to(a, outer) for a in (*first, *rest)])


# ---- scattered -------------------------------------------------------------------------------


@importer("ScatterElements", "Scatter", raw=True)
def scatter_elements(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    axis = axis_of(node["axis"], x.ndim)
    places = _inside(array(indices), x.shape[axis])
    if places.ndim != x.ndim or places.shape != updates.shape:
        raise node.refuse("indices", f"the shape of the updates {updates.shape}", places.shape)
    grid = np.ogrid[tuple([slice(0, n) for n in places.shape])]
    index = tuple([places if a == axis else g for a, g in enumerate(grid)])
    flat = np.ravel_multi_index(tuple(np.broadcast_arrays(*index)), x.shape)
    return scattered(x, flat.reshape(-1), updates, node["reduction"] or "none")


@importer("ScatterND", raw=True)
def scatter_nd(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    found = require_integers(array(indices))
    index = _nd_index(found, x.shape, 0)
    numbers = np.arange(math.prod(x.shape)).reshape(x.shape)[index]
    if numbers.shape != tuple(updates.shape):
        raise node.refuse("updates", f"the shape {numbers.shape}", updates.shape)
    return scattered(x, numbers.reshape(-1), updates, node["reduction"] or "none")


@importer("TensorScatter", raw=True)
def tensor_scatter(node: Node, cache: Value, update: Value, start: Value = None) -> Value:
    """Rows of each sample written into its cache, from a place of its own on."""
    axis = axis_of(node["axis"], cache.ndim)
    count, size, batch = update.shape[axis], cache.shape[axis], cache.shape[0]
    first = np.zeros(batch, np.int64) if start is None else array(start)
    rows = first[:, None] + np.arange(count)
    if node["mode"] == "circular":
        rows = rows % size
    shape = [1] * cache.ndim
    shape[0], shape[axis] = batch, count
    places = np.broadcast_to(rows.reshape(shape), update.shape)
    inner = Node("ScatterElements", node.version, {"axis": axis}, name=node.name)
    return scatter_elements(inner, cache, places, update)


_REDUCED: dict[str, tuple[Any, Any]] = {
    "add": (ops.add, np.add),
    "mul": (ops.mul, np.multiply),
    "max": (ops.maximum, np.maximum),
    "min": (ops.minimum, np.minimum),
}


def scattered(x: Value, targets: Array, updates: Value, reduction: str) -> Value:
    """x with updates at some of its elements, numbered row by row; they are taken in order."""
    held = [v for v in (x, updates) if isinstance(v, Tensor) and is_float(v.dtype)]
    if not held:
        y = np.array(array(x), order="C")
        flat, new = y.reshape(-1), array(updates).reshape(-1)
        if reduction == "none":
            flat[targets] = new
        else:
            _REDUCED[reduction][1].at(flat, targets, new)
        return y
    flat_x, new = ops.reshape(x, (-1,)), ops.reshape(updates, (-1,))
    both, count = ops.concatenate([flat_x, new]), flat_x.shape[0]
    if reduction == "none":
        source = np.arange(count)
        source[targets] = count + np.arange(len(targets))
        return ops.reshape(ops.getitem(both, source), x.shape)
    for touched, sources in _rounds(targets):  # each element once in a round
        function = _REDUCED[reduction][0]
        changed = function(ops.getitem(flat_x, touched), ops.getitem(new, sources))
        source = np.arange(count)
        source[touched] = count + np.arange(len(touched))
        flat_x = ops.getitem(ops.concatenate([flat_x, changed]), source)
    return ops.reshape(flat_x, x.shape)


def _rounds(targets: Array) -> list[tuple[Array, Array]]:
    """Targets with the numbers of their updates, in rounds in which each comes at most once."""
    order = np.argsort(targets, kind="stable")
    sorted_targets = targets[order]
    first = np.searchsorted(sorted_targets, sorted_targets)
    turn = np.arange(len(order)) - first
    rounds = range(int(turn.max(initial=-1)) + 1)
    return [(sorted_targets[turn == r], order[turn == r]) for r in rounds]


# ---- sorted and selected ---------------------------------------------------------------------


@importer("TopK", raw=True)
def top_k(node: Node, x: Value, k: Value = None) -> Any:
    """Of equal elements the first; up to opset 9 k is an attribute."""
    (count,) = [node["k"]] if k is None else ints(k)
    found = array(x)
    axis = axis_of(node["axis"], found.ndim)
    if not 0 <= count <= found.shape[axis]:
        raise node.refuse("k", f"at most {found.shape[axis]}", count)
    places = np.argsort(found, axis, kind="stable")
    if node["largest"] in (None, 1):
        turned = np.argsort(np.flip(found, axis), axis, kind="stable")
        places = found.shape[axis] - 1 - np.flip(turned, axis)
    places = np.take(places, np.arange(count), axis)
    if isinstance(x, Tensor) and x.dtype.kind == "f":
        return ops.gather(x, axis, places), places
    return np.take_along_axis(found, places, axis), places


@importer("Compress", raw=True)
def compress(node: Node, x: Value, condition: Value) -> Value:
    axis = node["axis"]
    source = x
    if axis is None:
        source = ops.reshape(x, (-1,)) if isinstance(x, Tensor) else array(x).reshape(-1)
        axis = 0
    axis = axis_of(axis, source.ndim)
    chosen = np.flatnonzero(array(condition))
    chosen = _inside(chosen, source.shape[axis])
    if isinstance(source, Tensor):
        return ops.getitem(source, (*[_EVERY] * axis, chosen))
    return np.take(source, chosen, axis)


@importer("ReverseSequence", raw=True)
def reverse_sequence(node: Node, x: Value, lengths: Value) -> Value:
    """The first elements of each sample the other way round."""
    time, batch = node["time_axis"], node["batch_axis"]
    steps = np.arange(x.shape[time])[:, None]
    size = array(lengths)[None, :]
    places = np.where(steps < size, size - 1 - steps, steps)  # (T, N)
    if (time, batch) == (1, 0):
        places = places.T
    elif (time, batch) != (0, 1):
        raise node.refuse("axes", "time and batch as the first two", (time, batch))
    full = places.reshape(*places.shape, *[1] * (x.ndim - 2))
    full = np.broadcast_to(full, x.shape)
    if isinstance(x, Tensor) and x.dtype.kind == "f":
        return ops.gather(x, time, full)
    return np.take_along_axis(array(x), full, time)
