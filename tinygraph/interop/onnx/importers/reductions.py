"""Sums, means, products, extremes and their kin, over some axes; cumulative sums; softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph import ops
from tinygraph.engine import Array, Tensor
from tinygraph.interop.onnx.nodes import (
    Node,
    Value,
    array,
    axes_of,
    axis_of,
    importer,
    ints,
    is_half,
    tensor,
)

Axes = tuple[int, ...]


def _l1(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return ops.sum(ops.abs(x), axes, keep)


def _l2(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return ops.norm(x, 2, axes, keep)


def _log_sum(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return ops.log(ops.sum(x, axes, keep))


def _sum_square(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    return ops.sum(ops.square(x), axes, keep)


def _log_sum_exp(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    if 0 in x.shape:
        return ops.log(ops.sum(ops.exp(x), axes, keep))
    return ops.logsumexp(x, axes, keep)


def _extreme(function: Any, along_one: Any, empty: float) -> Callable[[Tensor, Axes, bool], Tensor]:
    def extreme(x: Tensor, axes: Axes, keep: bool) -> Tensor:
        if 0 in [x.shape[a] for a in axes]:
            return ops.add(ops.sum(x, axes, keep), empty)
        if len(axes) == x.ndim:
            return function(x, None, keep)
        return along_one(x, axes[0], keep)[0] if len(axes) == 1 else function(x, axes, keep)

    return extreme


def _mean_in_numpy(x: Array, axis: Axes, keepdims: bool) -> Array:
    if x.dtype.kind not in "iu":
        return np.mean(x, axis, keepdims=keepdims)
    count = math.prod(x.shape[a] for a in axis)
    total = np.sum(x, axis, np.int64, keepdims=keepdims)
    return np.trunc(total / count).astype(x.dtype)


def _extreme_in_numpy(function: Any, low: bool) -> Callable[..., Array]:
    def extreme(x: Array, axis: Axes, keepdims: bool) -> Array:
        if x.size:
            return function(x, axis, keepdims=keepdims)
        limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        worst: Any = -math.inf if low else math.inf
        if limits is not None:
            worst = limits.min if low else limits.max
        if x.dtype.kind == "b":
            worst = not low
        return function(x, axis, keepdims=keepdims, initial=worst)

    return extreme


def _over(function: Any, before: Any = None, after: Any = None) -> Callable[..., Array]:
    """A reduction of numpy in the dtype that it is given."""

    def reduce(x: Array, axis: Axes, keepdims: bool) -> Array:
        y = function(x if before is None else before(x), axis, keepdims=keepdims)
        return np.asarray(y if after is None else after(y)).astype(x.dtype)

    return reduce


_REDUCTIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Array]]] = {
    "ReduceSum": (ops.sum, _over(np.sum)),
    "ReduceMean": (ops.mean, _mean_in_numpy),
    "ReduceProd": (ops.prod, _over(np.prod)),
    "ReduceMax": (_extreme(ops.amax, ops.max, -math.inf), _extreme_in_numpy(np.max, True)),
    "ReduceMin": (_extreme(ops.amin, ops.min, math.inf), _extreme_in_numpy(np.min, False)),
    "ReduceL1": (_l1, _over(np.sum, np.abs)),
    "ReduceL2": (_l2, _over(np.sum, np.square, np.sqrt)),
    "ReduceLogSum": (_log_sum, _over(np.sum, None, np.log)),
    "ReduceLogSumExp": (_log_sum_exp, _over(np.sum, np.exp, np.log)),
    "ReduceSumSquare": (_sum_square, _over(np.sum, np.square)),
}
_OF_ELEMENTS = {"ReduceL1": ops.abs, "ReduceSumSquare": ops.square, "ReduceL2": ops.abs}


def _reduction(kind: str, function: Callable[..., Tensor], in_numpy: Callable[..., Array]) -> None:
    @importer(kind, raw=True)
    def reduce(node: Node, x: Value, axes: Value = None) -> Value:
        """The axes are an attribute in early opsets, then an input; none: all of them."""
        named = node["axes"] if axes is None else ints(axes)
        if not named and node["noop_with_empty_axes"]:
            return x
        over = tuple(axes_of(named or range(x.ndim), x.ndim))
        keep = bool(node["keepdims"])
        if x.dtype not in (np.float32, np.float64):
            found = array(x)
            if is_half(x):
                return in_numpy(found.astype(np.float32), over, keep).astype(found.dtype)
            return in_numpy(found, over, keep)
        if not over:  # of a single number
            each = _OF_ELEMENTS.get(kind)
            return x if each is None else each(tensor(x))
        return function(tensor(x), over, keep)


for _kind, _entry in _REDUCTIONS.items():
    _reduction(_kind, *_entry)


# ---- along one axis --------------------------------------------------------------------------


def _cumulative(kind: str, in_numpy: Any, first: int) -> None:
    @importer(kind, raw=True)
    def along(node: Node, x: Value, axis: Value) -> Value:
        place = axis_of(int(array(axis).reshape(())), x.ndim)
        if not isinstance(x, Tensor) or x.dtype.kind != "f" or kind == "CumProd":
            if isinstance(x, Tensor) and x.requires_grad:
                return _cumulative_product(node, x, place)
            y = array(x)
            y = np.flip(y, place) if node["reverse"] else y
            wide = np.float64 if y.dtype.kind == "f" else None
            total = in_numpy(y, place, wide).astype(y.dtype)
            if node["exclusive"]:
                start = np.full_like(np.take(total, [0], place), first) if y.shape[place] else total
                total = np.concatenate([start, np.delete(total, -1, place)], place)
            return np.flip(total, place) if node["reverse"] else total
        z = ops.flip(x, place) if node["reverse"] else x
        sums = ops.cumsum(z, place)
        if node["exclusive"]:
            sums = _shifted(ops.cumsum(z, place), place)
        return ops.flip(sums, place) if node["reverse"] else sums


def _shifted(x: Tensor, axis: int) -> Tensor:
    """x one place further along an axis, after a 0."""
    before: list[Any] = [(0, 0)] * x.ndim
    before[axis] = (1, 0)
    cut: list[Any] = [slice(None)] * x.ndim
    cut[axis] = slice(0, x.shape[axis])
    return ops.getitem(ops.pad(x, tuple(before)), tuple(cut))


def _cumulative_product(node: Node, x: Tensor, axis: int) -> Tensor:
    """Step by step, for the gradient."""
    parts = list(ops.unbind(x, axis))
    parts = parts[::-1] if node["reverse"] else parts
    total = ops.add(ops.mul(parts[0], 0.0), 1.0) if node["exclusive"] else parts[0]
    products = [total]
    for part in parts[:-1] if node["exclusive"] else parts[1:]:
        total = ops.mul(total, part)
        products.append(total)
    return ops.stack(products[::-1] if node["reverse"] else products, axis)


_cumulative("CumSum", np.cumsum, 0)
_cumulative("CumProd", np.cumprod, 1)


# ---- softmax ---------------------------------------------------------------------------------


def _softmax(kind: str, function: Callable[..., Tensor], of_halves: Any) -> None:
    @importer(kind, raw=True)
    def apply(node: Node, x: Value) -> Value:
        """Up to opset 12 over all axes from one on, as if they were one."""
        axis = axis_of(node["axis"], x.ndim)
        halves = is_half(x)
        z = array(x) if halves else tensor(x)
        if node.version < 13 and axis < x.ndim - 1:
            flat = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
            y = of_halves(z.reshape(flat), 1) if halves else function(ops.reshape(z, flat), 1)
            return y.reshape(x.shape)
        return of_halves(z, axis) if halves else function(z, axis)


def _softmax_of_halves(x: Array, axis: int) -> Array:
    """Each step is rounded, as in the body that the standard gives."""
    e = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis, keepdims=True, dtype=x.dtype)


def _log_softmax_of_halves(x: Array, axis: int) -> Array:
    z = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return z - np.log(np.sum(np.exp(z), axis, keepdims=True, dtype=x.dtype))


_softmax("Softmax", ops.softmax, _softmax_of_halves)
_softmax("LogSoftmax", ops.log_softmax, _log_softmax_of_halves)
