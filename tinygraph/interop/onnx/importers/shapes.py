"""What moves, cuts, joins and repeats elements without looking at them."""

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
    is_float,
    of_axes,
    take_memory,
    tensor,
)


def held(x: Value) -> bool:
    """Whether the ops of tinygraph move it; numpy moves everything else."""
    return isinstance(x, Tensor)


@importer("Reshape", raw=True)
def reshape(node: Node, x: Value, shape: Value = None) -> Value:
    """A 0 stands for the size that is there, but for allowzero=1."""
    sizes = list(node["shape"]) if shape is None else ints(shape)
    if node["allowzero"]:
        if 0 in sizes and -1 in sizes:
            raise node.refuse("shape", "a 0 or a -1 with allowzero=1", sizes)
    else:
        sizes = [x.shape[i] if n == 0 else n for i, n in enumerate(sizes)]
    return moved(x, tuple(sizes))


def moved(x: Value, shape: tuple[int, ...]) -> Value:
    """The elements in another shape, of which one size may be -1."""
    if -1 in shape and 0 in x.shape:
        others = math.prod(n for n in shape if n != -1)
        shape = tuple([(x.size // others if others else 0) if n == -1 else n for n in shape])
    return ops.reshape(x, shape) if held(x) else array(x).reshape(shape)


@importer("Flatten", raw=True)
def flatten(node: Node, x: Value) -> Value:
    axis = node["axis"]
    if not -x.ndim <= axis <= x.ndim:
        raise node.refuse("axis", f"from {-x.ndim} to {x.ndim}", axis)
    axis += x.ndim if axis < 0 else 0
    if held(x) and axis == 1 and x.ndim >= 2:
        return ops.flatten(x, 1)
    return moved(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@importer("Squeeze", raw=True)
def squeeze(node: Node, x: Value, axes: Value = None) -> Value:
    named = node["axes"] if axes is None else ints(axes)
    if named is None:
        over = tuple([i for i, n in enumerate(x.shape) if n == 1])
    else:
        over = tuple([axis_of(a, x.ndim) for a in named])
    if not over:
        return x
    return ops.squeeze(x, over) if held(x) else np.squeeze(array(x), over)


@importer("Unsqueeze", raw=True)
def unsqueeze(node: Node, x: Value, axes: Value = None) -> Value:
    named = list(node["axes"]) if axes is None else ints(axes)
    take_memory([1] * (x.ndim + len(named)))
    over = tuple([axis_of(a, x.ndim + len(named)) for a in named])
    if not over:
        return x
    return ops.unsqueeze(x, over) if held(x) else np.expand_dims(array(x), over)


@importer("Transpose", raw=True)
def transpose(node: Node, x: Value) -> Value:
    order = range(x.ndim)[::-1] if node["perm"] is None else node["perm"]
    if sorted(order) != list(range(x.ndim)):
        raise node.refuse("perm", f"each of {x.ndim} axes once", list(order))
    if x.ndim < 2:
        return x
    return ops.permute(x, tuple(order)) if held(x) else np.transpose(array(x), order)


@importer("Expand", raw=True)
def expand(node: Node, x: Value, shape: Value) -> Value:
    out = take_memory(np.broadcast_shapes(x.shape, tuple(take_memory(ints(shape)))))
    if held(x):
        return ops.expand(x, out)
    return np.broadcast_to(array(x), out).copy()


@importer("Tile", raw=True)
def tile(node: Node, x: Value, repeats: Value, axis: Value = None) -> Value:
    counts = ints(repeats)
    if axis is not None:  # up to opset 5
        (place,) = axes_of(ints(axis), x.ndim)
        if len(counts) != 1:
            raise node.refuse("tiles", "one number", counts)
        counts = [counts[0] if a == place else 1 for a in range(x.ndim)]
    if len(counts) != x.ndim:
        raise node.refuse("repeats", f"{x.ndim} numbers", counts)
    take_memory([n * max(c, 0) for n, c in zip(x.shape, counts, strict=True)])
    if not counts:
        return x
    return ops.tile(x, counts) if held(x) else np.tile(array(x), counts)


@importer("Concat", raw=True)
def concat(node: Node, *values: Value) -> Value:
    axis = axis_of(1 if node["axis"] is None else node["axis"], values[0].ndim)
    if any(held(v) for v in values):
        return ops.concatenate([tensor(v) for v in values], axis)
    return np.concatenate([array(v) for v in values], axis)


@importer("Split", raw=True)
def split(node: Node, x: Value, sizes: Value = None) -> Any:
    """Sizes are given, or the axis falls into that many parts, the last one smaller."""
    axis = axis_of(node["axis"] or 0, x.ndim)
    given = node["split"] if sizes is None else ints(sizes)
    size, count = x.shape[axis], len(node.outputs)
    if node["num_outputs"] not in (None, count):
        raise node.refuse("num_outputs", f"{count}, as there are outputs", node["num_outputs"])
    if given and len(given) != count:
        raise node.refuse("split", f"{count} sizes, as there are outputs", given)
    if not given:
        part = -(-size // count)
        if node["num_outputs"] is None and size % count:
            raise node.refuse("input", f"a size that {count} parts divide", size)
        given = [max(min(part, size - i * part), 0) for i in range(count)]
    if sum(given) != size or min(given) < 0:
        raise node.refuse("split", f"sizes that make up {size}", given)
    if held(x):
        return ops.split(x, list(given), axis)
    return tuple(np.split(array(x), np.cumsum(given)[:-1], axis))


@importer("Slice", raw=True)
def cut(
    node: Node,
    x: Value,
    starts: Value = None,
    ends: Value = None,
    axes: Value = None,
    steps: Value = None,
) -> Value:
    """Up to opset 9 the numbers are attributes, and there are no steps."""
    first = node["starts"] if starts is None else ints(starts)
    last = node["ends"] if ends is None else ints(ends)
    over = node["axes"] if axes is None else ints(axes)
    over = list(range(len(first))) if over is None else over
    by = [1] * len(first) if steps is None else ints(steps)
    index: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes_of(over, x.ndim), first, last, by, strict=True):
        index[axis] = _range(start, end, step, x.shape[axis])
    return x[tuple(index)] if held(x) else array(x)[tuple(index)]


def _range(start: int, end: int, step: int, size: int) -> slice:
    """The slice that ONNX means, whose ends are clamped."""
    start += size if start < 0 else 0
    end += size if end < 0 else 0
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    low = min(max(end, -1), size - 1)
    start = min(max(start, 0), size - 1) if size else 0
    return slice(start, None if low < 0 else low, step)


# ---- borders ---------------------------------------------------------------------------------

_MODES = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}


@importer("Pad", raw=True)
def pad(node: Node, x: Value, pads: Value = None, value: Value = None, axes: Value = None) -> Value:
    """Up to opset 10 the numbers are attributes, called paddings in opset 1; below 0 they cut."""
    numbers = (node["pads"] or node["paddings"]) if pads is None else ints(pads)
    over = list(range(x.ndim)) if axes is None else axes_of(ints(axes), x.ndim)
    if len(numbers) != 2 * len(over):
        raise node.refuse("pads", f"{2 * len(over)} numbers", numbers)
    mode = node["mode"] or "constant"
    if mode not in _MODES:
        raise node.refuse("mode", f"one of {sorted(_MODES)}", mode)
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(over):
        widths[axis] = numbers[i], numbers[i + len(over)]
    fill: Any = node["value"] or 0.0
    if value is not None and array(value).size:
        fill = array(value).reshape(()).item()
    return padded(x, widths, mode, fill)


def padded(x: Value, widths: list[tuple[int, int]], mode: str, fill: Any = 0.0) -> Value:
    """x with borders, or less than x where a width is below 0."""
    inner = tuple(
        [slice(max(-b, 0), n - max(-a, 0)) for (b, a), n in zip(widths, x.shape, strict=True)]
    )
    if any(b < 0 or a < 0 for b, a in widths):
        x = x[inner] if held(x) else array(x)[inner]
    more = tuple([(max(b, 0), max(a, 0)) for b, a in widths])
    take_memory([b + n + a for (b, a), n in zip(more, x.shape, strict=True)])
    if not any(b or a for b, a in more):
        return x
    if held(x) and is_float(x.dtype):
        least = {"reflect": 1, "wrap": 0}.get(mode)  # elements that lie beyond the border
        wide = zip(more, x.shape, strict=True)
        if least is None or all(max(w) + least <= n for w, n in wide if max(w)):
            return ops.pad(x, more, fill, _MODES[mode])
        return _bordered(x, more, mode)
    options = {"constant_values": fill} if mode == "constant" else {}
    return np.pad(array(x), more, mode, **options)  # type: ignore[call-overload]


def _bordered(x: Tensor, widths: tuple[tuple[int, int], ...], mode: str) -> Tensor:
    """A border that goes around more than once, by the place of each element."""
    for axis, (before, after) in enumerate(widths):
        if before or after:
            places = np.pad(np.arange(x.shape[axis]), (before, after), mode)  # type: ignore[call-overload]
            x = ops.getitem(x, (*[slice(None)] * axis, places))
    return x


# ---- blocks ----------------------------------------------------------------------------------


@importer("DepthToSpace", raw=True)
def depth_to_space(node: Node, x: Value) -> Value:
    size = node["blocksize"]
    n, c, h, w = x.shape
    if node["mode"] in (None, "DCR"):
        parts = moved(x, (n, size, size, c // size**2, h, w))
        order = (0, 3, 4, 1, 5, 2)
    else:
        parts = moved(x, (n, c // size**2, size, size, h, w))
        order = (0, 1, 4, 2, 5, 3)
    return moved(_ordered(parts, order), (n, c // size**2, h * size, w * size))


@importer("SpaceToDepth", raw=True)
def space_to_depth(node: Node, x: Value) -> Value:
    size = node["blocksize"]
    n, c, h, w = x.shape
    parts = moved(x, (n, c, h // size, size, w // size, size))
    order = (0, 3, 5, 1, 2, 4) if node["mode"] in (None, "DCR") else (0, 1, 3, 5, 2, 4)
    return moved(_ordered(parts, order), (n, c * size**2, h // size, w // size))


def _ordered(x: Value, order: tuple[int, ...]) -> Value:
    return ops.permute(x, order) if held(x) else np.transpose(array(x), order)


def _triangle(x: Array, upper: bool, k: int) -> Array:
    return np.triu(x, k) if upper else np.tril(x, k)


@importer("Trilu", raw=True)
def trilu(node: Node, x: Value, k: Value = None) -> Value:
    diagonal, upper = 0 if k is None else int(array(k).reshape(())), bool(node["upper"])
    limit = max(x.shape[-2:]) + 1
    diagonal = min(max(diagonal, -limit), limit)
    if held(x) and x.dtype in (np.float32, np.float64) and x.size:
        function: Callable[..., Tensor] = ops.triu if upper else ops.tril
        return function(x, diagonal)
    return _triangle(array(x), upper, diagonal)


@importer("Col2Im")
def col2im(node: Node, x: Value, image: Value, block: Value) -> Value:
    """Columns back to where they were taken; over two axes an op, over others by places."""
    sizes, kernel = ints(image), ints(block)
    take_memory([*x.shape[:2], *sizes])
    axes = len(sizes)
    strides, dilations = (of_axes(node, name, axes, 1) for name in ("strides", "dilations"))
    pads = of_axes(node, "pads", 2 * axes, 0)
    if len(kernel) != axes or min(*kernel, *sizes) < 1 or min(pads) < 0:
        expected = f"{axes} sizes of 1 or more, and pads of 0 or more"
        raise node.refuse("image_shape, block_shape, pads", expected, (sizes, kernel, pads))
    if axes == 2 and pads[:2] == pads[2:]:
        pair = tuple(sizes), tuple(kernel), tuple(strides), tuple(pads[:2]), tuple(dilations)
        return ops.col2im(x, *pair)  # type: ignore[arg-type]
    wide = [n + pads[i] + pads[axes + i] for i, n in enumerate(sizes)]
    take_memory([*x.shape[:2], *wide])
    places = np.arange(math.prod(wide)).reshape(wide)
    for i in range(axes):  # (K..., O...) positions of each column's elements
        d, s, k = dilations[i], strides[i], kernel[i]
        count = (wide[i] - d * (k - 1) - 1) // s + 1
        at = d * np.arange(k)[:, None] + s * np.arange(count)[None, :]
        places = np.take(places, at, axis=2 * i)
    order = [*range(0, 2 * axes, 2), *range(1, 2 * axes, 2)]
    flat = np.transpose(places, order).reshape(-1)
    n, rows = x.shape[:2]
    channels = rows // math.prod(kernel)
    parts = ops.reshape(x, (n * channels, -1))
    y = _summed_at(parts, flat, math.prod(wide))
    y = ops.reshape(y, (n, channels, *wide))
    inner = tuple([slice(pads[i], pads[i] + size) for i, size in enumerate(sizes)])
    return y[(slice(None), slice(None), *inner)]


def _summed_at(x: Tensor, places: Array, size: int) -> Tensor:
    """y[:, p] = the sum of the columns of x whose place is p."""
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places, minlength=size)
    first = np.cumsum(counts) - counts
    zero = ops.pad(x, ((0, 0), (0, 1)))  # a column of zeros, for places with fewer terms
    y = None
    for r in range(int(counts.max(initial=0))):
        at = np.where(r < counts, first + r, 0).clip(max=max(len(order) - 1, 0))
        source = np.where(r < counts, order[at], x.shape[1])
        term = ops.getitem(zero, (slice(None), source))
        y = term if y is None else ops.add(y, term)
    return ops.expand(x[:, :1], (-1, size)) if y is None else y
