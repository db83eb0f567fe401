"""Pooling over any number of axes: where there is an op of it, that one; else axis by axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.engine import Array, Tensor
from tinygraph.interop.onnx.importers.indexing import scattered
from tinygraph.interop.onnx.importers.spans import Span, spans, symmetric
from tinygraph.interop.onnx.nodes import (
    Node,
    Value,
    array,
    importer,
    ints,
    of_axes,
    take_memory,
    tensor,
)


def _windows(x: Tensor, axis: int, places: Array, border: float) -> Tensor:
    """x with windows in the place of an axis: (..., OUT, K, ...); border where none is."""
    size = x.shape[axis]
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, 1)
    outside = (places < 0) | (places >= size)
    if outside.any():
        x = ops.pad(x, tuple(widths), border)
    return ops.getitem(x, (*[slice(None)] * axis, np.where(outside, size, places)))


# ---- the largest -----------------------------------------------------------------------------


@importer("MaxPool", raw=True)
def max_pool(node: Node, x: Value) -> Any:
    found = spans(node, x.shape[2:], tuple(node["kernel_shape"]))
    if x.dtype in (np.float32, np.float64):
        y: Value = _largest(node, tensor(x), found)
    else:  # integers and halves have room in float64
        wide = tensor(array(x).astype(np.float64))
        y = array(_by_axes(wide, found)).astype(x.dtype)
    return (y, _indices(array(x), found, bool(node["storage_order"]))) if node.wants(1) else y


def _largest(node: Node, x: Tensor, found: list[Span]) -> Tensor:
    if len(found) > 2:
        return _by_axes(x, found)
    ceil = bool(node["ceil_mode"])
    padding: Any = tuple([span.before for span in found])
    fits = all(2 * span.before <= span.kernel for span in found)
    if not fits or not symmetric(found):  # a border that never wins, as far as windows reach
        borders = [(span.before, span.behind()) for span in found]
        x = ops.pad(x, ((0, 0), (0, 0), *borders), -math.inf)
        ceil, padding = False, (0,) * len(found)
    kernel, stride, dilation = (
        tuple([getattr(span, field) for span in found])
        for field in ("kernel", "stride", "dilation")
    )
    if len(found) == 2:
        return ops.max_pool2d(x, kernel, stride, padding, dilation, ceil)
    return ops.max_pool1d(x, kernel[0], stride[0], padding[0], dilation[0], ceil)


def _by_axes(x: Tensor, found: list[Span]) -> Tensor:
    for axis, span in enumerate(found, 2):
        x = ops.max(_windows(x, axis, span.places(), -math.inf), axis + 1)[0]
    return x


def _indices(x: Array, found: list[Span], columns_first: bool) -> Array:
    """Where each maximum lies in x, row by row; or in its planes column by column."""
    axes = len(found)
    low: Any = -math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    z, inside = x, np.ones(x.shape[2:], bool)
    for axis, span in enumerate(found):
        places = span.places()
        out = (places < 0) | (places >= span.size)
        kept = np.where(out, 0, places)
        z = np.take(z, kept, 2 + 2 * axis)
        inside = np.take(inside, kept, 2 * axis)
        inside = inside & ~_spread(out, 2 * axis, inside.ndim)
    order = [*range(0, 2 * axes, 2), *range(1, 2 * axes, 2)]
    z = np.transpose(z, [0, 1, *[2 + o for o in order]])
    outs, kernels = z.shape[2 : 2 + axes], z.shape[2 + axes :]
    inside = np.transpose(inside, order).reshape(*outs, -1)
    flat = z.reshape(*z.shape[: 2 + axes], -1)
    best = np.argmax(np.where(inside, flat, low), -1)
    padding = ~np.take_along_axis(np.broadcast_to(inside, flat.shape), best[..., None], -1)[..., 0]
    best = np.where(padding, np.argmax(inside, -1), best)
    offsets = np.unravel_index(best, kernels)
    total = np.zeros(best.shape, np.int64)
    shape = [span.size for span in found]
    steps = _steps(shape[::-1])[::-1] if columns_first else _steps(shape)
    for i, span in enumerate(found):
        first = np.arange(span.out).reshape([-1 if a == i else 1 for a in range(axes)])
        total += (first * span.stride - span.before + offsets[i] * span.dilation) * steps[i]
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * axes)
    return total + planes * math.prod(shape)


def _spread(mask: Array, axis: int, ndim: int) -> Array:
    """A mask (OUT, K) along two axes of an array of `ndim`."""
    return mask.reshape(*[1] * axis, *mask.shape, *[1] * (ndim - axis - 2))


def _steps(shape: list[int]) -> list[int]:
    """How far the next element along each axis is."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


@importer("MaxUnpool", raw=True)
def max_unpool(node: Node, x: Value, indices: Value, output_shape: Value = None) -> Value:
    """Elements back where they were the largest, 0 elsewhere."""
    axes = x.ndim - 2
    strides, pads = of_axes(node, "strides", axes, 1), of_axes(node, "pads", 2 * axes, 0)
    kernel = of_axes(node, "kernel_shape", axes, 1)
    image = [
        (n - 1) * strides[i] - pads[i] - pads[axes + i] + kernel[i]
        for i, n in enumerate(x.shape[2:])
    ]
    shape = take_memory((*x.shape[:2], *image))
    zeros = np.zeros(shape, x.dtype)
    targets = array(indices).reshape(-1)
    if targets.size and not 0 <= targets.min() <= targets.max() < zeros.size:
        raise node.refuse("indices", f"places of {shape}", targets.max())
    y = scattered(tensor(zeros) if isinstance(x, Tensor) else zeros, targets, x, "none")
    if output_shape is None:
        return y
    sizes = take_memory(ints(output_shape))
    widths = tuple([(0, n - m) for n, m in zip(sizes, shape, strict=True)])
    return ops.pad(y, widths) if isinstance(y, Tensor) else np.pad(array(y), widths)


# ---- means and powers ------------------------------------------------------------------------


@importer("AveragePool")
def average_pool(node: Node, x: Value) -> Tensor:
    found = spans(node, x.shape[2:], tuple(node["kernel_shape"]))
    counts, fits = bool(node["count_include_pad"]), all(2 * s.before <= s.kernel for s in found)
    plain = symmetric(found) and fits and all(span.dilation == 1 for span in found)
    if plain and len(found) in (1, 2):
        kernel, stride, before = (
            tuple([getattr(span, field) for span in found])
            for field in ("kernel", "stride", "before")
        )
        ceil = bool(node["ceil_mode"])
        if len(found) == 2:
            return ops.avg_pool2d(x, kernel, stride, before, ceil, counts)
        return ops.avg_pool1d(x, kernel[0], stride[0], before[0], ceil, counts)
    for axis, span in enumerate(found, 2):
        places = span.places()
        total = ops.sum(_windows(x, axis, places, 0.0), axis + 1)
        low, high = (-span.before, span.size + span.after) if counts else (0, span.size)
        number = ((places >= low) & (places < high)).sum(1)
        shape = (-1, *[1] * (x.ndim - axis - 1))
        x = ops.div(total, number.reshape(shape).astype(x.dtype))
    return x


@importer("LpPool")
def lp_pool(node: Node, x: Value) -> Tensor:
    found = spans(node, x.shape[2:], tuple(node["kernel_shape"]))
    p = float(node["p"])
    x = ops.pow(ops.abs(x), p)
    for axis, span in enumerate(found, 2):
        x = ops.sum(_windows(x, axis, span.places(), 0.0), axis + 1)
    return ops.pow(x, 1.0 / p)


@importer("GlobalAveragePool")
def global_average_pool(node: Node, x: Value) -> Tensor:
    return ops.mean(x, tuple(range(2, x.ndim)), True)


@importer("GlobalMaxPool")
def global_max_pool(node: Node, x: Value) -> Tensor:
    return ops.amax(x, tuple(range(2, x.ndim)), True)


@importer("GlobalLpPool")
def global_lp_pool(node: Node, x: Value) -> Tensor:
    p = float(node["p"])
    total = ops.sum(ops.pow(ops.abs(x), p), tuple(range(2, x.ndim)), True)
    return ops.pow(total, 1.0 / p)


@importer("LRN")
def local_response(node: Node, x: Value) -> Tensor:
    """x / (bias + alpha / size * the sum of squares over neighbouring channels) ** beta."""
    size, channels = node["size"], x.shape[1]
    first = np.arange(channels)[:, None] - (size - 1) // 2
    places = first + np.arange(min(size, 2 * channels + 1))
    total = ops.sum(_windows(ops.square(x), 1, places, 0.0), 2)
    base = ops.add(ops.mul(total, node["alpha"] / size), node["bias"])
    return ops.div(x, ops.pow(base, node["beta"]))
