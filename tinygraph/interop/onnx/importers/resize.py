"""Resize and Upsample: where there is an op of it, that one; else axis by axis.

On one axis an output reads some elements, each with a weight: y[u] = sum over k of w[u, k] *
x[at[u, k]].  Places outside read the outermost element.  Source: Keys, "Cubic convolution
interpolation for digital image processing", 1981.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinygraph import ops
from tinygraph.engine import Array, Tensor
from tinygraph.interop.onnx.nodes import Node, Value, array, axes_of, importer, ints, take_memory

_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


class Axis(NamedTuple):
    """How one axis changes: its number, its sizes, how much larger it becomes, its region."""

    axis: int
    size: int
    out: int
    scale: float
    roi: tuple[float, float]


@importer("Upsample", raw=True)
def upsample(node: Node, x: Value, scales: Value = None) -> Value:
    """Up to opset 9; the first pixel of the output lies on that of the input."""
    given = node["scales"] if scales is None else array(scales).tolist()
    if given is None:
        given = [1.0, 1.0, node["height_scale"], node["width_scale"]]
    settings = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    mode = "linear" if node["mode"] == "bilinear" else node["mode"]
    inner = Node("Resize", 11, {**settings, "mode": mode, "cubic_coeff_a": -0.75}, name=node.name)
    return _resized(inner, x, _axes(node, x, given, None, None, None))


@importer("Resize", raw=True)
def resize(
    node: Node, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None
) -> Value:
    if node.version < 11:  # data and scales; as Upsample
        return upsample(node, x, roi)
    named = axes_of(node["axes"] or range(x.ndim), x.ndim)
    factors = None if scales is None or not array(scales).size else array(scales).tolist()
    wanted = None if sizes is None or not array(sizes).size else ints(sizes)
    if (factors is None) == (wanted is None):
        raise node.refuse("scales, sizes", "one of them", "both or neither")
    region = None if roi is None or not array(roi).size else array(roi).tolist()
    return _resized(node, x, _axes(node, x, factors, wanted, region, named))


def _axes(
    node: Node, x: Value, scales: Any, sizes: Any, roi: Any, named: list[int] | None
) -> list[Axis]:
    over = list(range(x.ndim)) if named is None else named
    given = scales if sizes is None else sizes
    if len(given) != len(over) or (roi is not None and len(roi) != 2 * len(over)):
        raise node.refuse("scales, sizes, roi", f"numbers for {len(over)} axes", given)
    if not all(n > 0 and math.isfinite(n) for n in given) or 0 in x.shape:
        raise node.refuse("scales, sizes", "numbers above 0, and an x with elements", given)
    policy = node["keep_aspect_ratio_policy"] or "stretch"
    if sizes is not None and policy != "stretch":
        ratios = [n / x.shape[a] for n, a in zip(sizes, over, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        scales = [ratio] * len(over)
        sizes = [math.floor(x.shape[a] * ratio + 0.5) for a in over]
    axes = []
    for i, axis in enumerate(over):
        size = x.shape[axis]
        scale = float(scales[i]) if scales is not None else sizes[i] / size
        out = math.floor(size * scale) if sizes is None else sizes[i]
        region = (0.0, 1.0) if roi is None else (roi[i], roi[i + len(over)])
        axes.append(Axis(axis, size, out, scale, region))
    take_memory([next((a.out for a in axes if a.axis == i), n) for i, n in enumerate(x.shape)])
    return axes


def _resized(node: Node, x: Value, axes: list[Axis]) -> Value:
    if x.dtype not in (np.float32, np.float64):
        if node["mode"] != "nearest":
            wide = Tensor(array(x).astype(np.float64))
            return np.asarray(_resized(node, wide, axes).numpy()).astype(x.dtype)
        y = array(x)
        for axis in axes:
            if _changes(node, axis):
                y = np.take(y, _nearest(node, axis), axis.axis)
        return y
    y = Tensor(x) if not isinstance(x, Tensor) else x
    changing = [axis for axis in axes if _changes(node, axis)]
    if (like := _as_interpolate(node, y, axes, changing)) is not None:
        return like
    outside: Any = False
    for axis in changing:
        if node["coordinate_transformation_mode"] == "tf_crop_and_resize":
            at = _places(node, axis)
            out = (at < 0) | (at > axis.size - 1)
            outside = outside | out.reshape(-1, *[1] * (x.ndim - axis.axis - 1))
        y = _along(node, y, axis)
    if np.any(outside):
        y = ops.where(np.broadcast_to(outside, y.shape), node["extrapolation_value"], y)
    return y


def _changes(node: Node, axis: Axis) -> bool:
    cropped = node["coordinate_transformation_mode"] == "tf_crop_and_resize"
    return axis.scale != 1 or axis.out != axis.size or (cropped and axis.roi != (0.0, 1.0))


def _as_interpolate(node: Node, x: Tensor, axes: list[Axis], changing: list[Axis]) -> Tensor | None:
    """tg.interpolate, where it computes the same."""
    inner = [axis for axis in axes if axis.axis >= 2]
    if x.ndim not in (3, 4) or len(inner) != x.ndim - 2 or any(a.axis < 2 for a in changing):
        return None
    kinds = {
        ("nearest", "asymmetric", "floor"): "nearest",
        ("nearest", "half_pixel", "round_prefer_ceil"): "nearest-exact",
    }
    places = node["coordinate_transformation_mode"]
    options: dict[str, Any] = {}
    if node["mode"] == "nearest":
        options["mode"] = kinds.get(("nearest", places, node["nearest_mode"]))
        if options["mode"] is None:
            return None
    elif node["mode"] == "linear" and places in ("half_pixel", "align_corners"):
        if node["antialias"] or node["exclude_outside"]:
            return None
        options["mode"] = ("linear", "bilinear")[x.ndim - 3]
        options["align_corners"] = places == "align_corners"
    else:
        return None
    by_size = all(axis.out / axis.size == axis.scale for axis in inner)
    inner = sorted(inner, key=lambda axis: axis.axis)
    if by_size:
        return ops.interpolate(x, tuple([axis.out for axis in inner]), None, **options)
    copied = any(axis.out == axis.size and axis.scale != 1 for axis in inner)  # not so in ONNX
    if options.get("align_corners") or copied:
        return None
    return ops.interpolate(x, None, tuple([axis.scale for axis in inner]), **options)


# ---- one axis --------------------------------------------------------------------------------


def _places(node: Node, axis: Axis) -> Array:
    """Where on the input each output lies."""
    u, size, scale = np.arange(axis.out, dtype=np.float64), axis.size, axis.scale
    length = scale * size
    mode = node["coordinate_transformation_mode"]
    if mode == "align_corners":
        return u * 0 if length == 1 else u * (size - 1) / (length - 1)
    if mode == "asymmetric":
        return u / scale
    if mode == "tf_crop_and_resize":
        start, end = axis.roi
        if length == 1:
            return u * 0 + (end - start) * (size - 1) / 2 + start * (size - 1)
        return u * (end - start) * (size - 1) / (length - 1) + start * (size - 1)
    if mode == "pytorch_half_pixel" and length == 1:
        return u * 0 - 0.5
    shift = 0.0
    if mode == "half_pixel_symmetric":
        shift = size / 2 * (1 - axis.out / length)
    elif mode not in ("half_pixel", "pytorch_half_pixel"):
        raise node.refuse("coordinate_transformation_mode", "one of the standard", mode)
    return shift + (u + 0.5) / scale - 0.5


def _nearest(node: Node, axis: Axis) -> Array:
    at = _places(node, axis)
    rounded = _ROUNDED.get(node["nearest_mode"])
    if rounded is None:
        raise node.refuse("nearest_mode", f"one of {sorted(_ROUNDED)}", node["nearest_mode"])
    return np.clip(rounded(at), 0, axis.size - 1).astype(np.int64)


def _along(node: Node, x: Tensor, axis: Axis) -> Tensor:
    ahead = (slice(None),) * axis.axis
    if node["mode"] == "nearest":
        return ops.getitem(x, (*ahead, _nearest(node, axis)))
    at, weights = _taps(node, axis)
    y: Any = None
    for k in range(at.shape[1]):
        weight = weights[:, k].astype(x.dtype).reshape(-1, *[1] * (x.ndim - axis.axis - 1))
        part = ops.mul(ops.getitem(x, (*ahead, at[:, k])), weight)
        y = part if y is None else ops.add(y, part)
    return y


def _taps(node: Node, axis: Axis) -> tuple[Array, Array]:
    """The elements that each output reads (OUT, K), and their weights."""
    at = _places(node, axis)
    first = np.ceil(at) - 1
    ratio = at - first  # above 0, up to 1
    shrinks = min(axis.scale, 1.0) if node["antialias"] else 1.0
    if node["mode"] == "linear":
        begin = math.floor(-1 / shrinks) + 1
    elif node["mode"] == "cubic":
        begin = math.floor(-2 / shrinks) + 1
    else:
        raise node.refuse("mode", "nearest, linear or cubic", node["mode"])
    take_memory([axis.out, 2 - 2 * begin])
    steps = np.arange(begin, 2 - begin)
    distance = np.abs((steps - ratio[:, None]) * shrinks)
    if node["mode"] == "linear":
        weights = np.clip(1 - distance, 0, 1)
    else:
        weights = _cubic(distance, node["cubic_coeff_a"])
    if shrinks < 1:
        weights /= weights.sum(1, keepdims=True)
    places = first[:, None] + steps
    if node["exclude_outside"]:
        weights = np.where((places < 0) | (places >= axis.size), 0.0, weights)
        weights /= weights.sum(1, keepdims=True)
    return np.clip(places, 0, axis.size - 1).astype(np.int64), weights


def _cubic(d: Array, a: float) -> Array:
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
