"""Pad: a border around an array, of one value or of what lies inside.

    b_a    elements before, on axis a          c_a    elements after
    y.shape[a] = b_a + x.shape[a] + c_a

    y[i + b] = x[i], and value elsewhere
    gx       = gy without the border: a view, where no kernel is to read it

The border is constant, so no gradient reaches it.  In the other modes it is made of slices of x:

    reflect      x mirrored at its first and its last element, which are not repeated
    replicate    the first and the last element again and again
    circular     what lies at the other end

and the gradient of an element is the sum of gy over the places where it stands.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, frozen, one_of
from tinygraph.engine import Array, Memory, Operand, Pair, Shape, Spec, Tensor, as_tensor
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import for_each
from tinygraph.ops.common.strided import (
    Axis,
    Strided,
    as_word,
    merged,
    read,
    steps_of,
    word_kernel,
    words,
)
from tinygraph.ops.shaping.concatenate import Concatenate
from tinygraph.ops.shaping.expand import Expand
from tinygraph.ops.shaping.getitem import getitem

Widths = tuple[Pair, ...]  # (before, after) for each axis, or a single pair for all of them

MODES = ("constant", "reflect", "replicate", "circular")
MOST_PADDED = 4  # axes of one launch; the same number stands in pad.cu


@frozen
class Pad(Op):
    widths: Widths
    value: float = 0.0

    def _each(self, ndim: int) -> Widths:
        """One pair for each axis."""
        return self.widths * ndim if len(self.widths) == 1 else self.widths

    def infer(self, x: Spec) -> Spec:
        widths = self._each(x.ndim)
        if len(widths) != x.ndim:
            expected = f"{x.ndim} pairs, one for each axis of x {x.shape}"
            got, way_out = f"{len(widths)}: {widths}", "write (0, 0) for an axis to leave alone"
            raise ShapeError(self.name, "pad_width", expected, got, way_out)
        if x.dtype.kind != "f" and not _holds(x.dtype, self.value):
            expected = f"a number that {x.dtype} can hold"
            way_out = "convert x first, for example with .astype('float32')"
            raise DtypeError(self.name, "value", expected, self.value, way_out)
        return Spec(tuple([b + n + a for (b, a), n in zip(widths, x.shape, strict=True)]), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, x.dtype)
        inner: tuple[Any, ...] = ()  # where x lies in y
        for (before, after), size in zip(self._each(x.ndim), x.shape, strict=True):
            # The border of this axis, where the axes before it are within x: each cell is set once.
            if before:
                y[(*inner, slice(0, before))] = self.value
            if after:
                y[(*inner, slice(before + size, None))] = self.value
            inner = (*inner, slice(before, before + size))
        y[inner] = x
        return y, (*inner, ...)  # with the Ellipsis, a view of a 0-d array is an array

    def backward(self, mem: Memory, gy: Array, inner: tuple[Any, ...], needs: Needs) -> Gradients:
        return (gy[inner],)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        shape = self.infer(Spec(x.shape, x.dtype)).shape
        if shape == x.shape:
            return x, shape
        y, axes = x, _merged(x.shape, self._each(x.ndim))
        while len(axes) > MOST_PADDED:  # the last ones first: the others are one axis then
            rest, last = axes[: 1 - MOST_PADDED], axes[1 - MOST_PADDED :]
            count = math.prod(axis.inner for axis in rest)
            y = self._launch(mem, y, [_Padded(count, 0, count), *last])
            rest[-1] = rest[-1].times(math.prod(axis.outer for axis in last))
            axes = rest
        return self._launch(mem, y, axes).reshape(shape), x.shape

    def _launch(self, mem: Memory, x: Array, axes: list[_Padded]) -> Array:
        """A border around up to four axes."""
        y = mem.empty(tuple([axis.outer for axis in axes]), x.dtype)
        inner_first = [*reversed(axes), *[_Padded(1, 0, 1)] * (MOST_PADDED - len(axes))]
        fields = "inner", "outer", "before"
        numbers = [getattr(axis, field) for field in fields for axis in inner_first]
        kernel, border = word_kernel("pad", "pad_forward", x.dtype), as_word(self.value, x.dtype)
        for_each(kernel, y.size, words(x), words(y), y.size, border, *numbers)
        return y

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        steps = steps_of(gy.shape)
        before = [b for b, _ in self._each(gy.ndim)]
        first = sum([b * step for b, step in zip(before, steps, strict=True)])
        axes = merged(Axis(size, step) for size, step in zip(shape, steps, strict=True))
        return (read(mem, gy, Strided(first, axes), shape),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.widths[:1] == ((0, 0),) else None


class _Padded(NamedTuple):
    """One axis: its size in x, the elements of border before it, its size in y."""

    inner: int
    before: int
    outer: int

    def times(self, count: int) -> _Padded:
        """This axis and one without border behind it as a single axis."""
        return _Padded(self.inner * count, self.before * count, self.outer * count)


def _merged(shape: Shape, widths: Widths) -> list[_Padded]:
    """The axes of x, each without border merged with the one before it."""
    axes = [_Padded(1, 0, 1)]
    for size, (before, after) in zip(shape, widths, strict=True):
        if before or after:
            axes.append(_Padded(size, before, before + size + after))
        else:
            axes[-1] = axes[-1].times(size)
    return axes if axes[0] != (1, 0, 1) else axes[1:]


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    """Whether an integer dtype, or bool, has this very value."""
    if not float(value).is_integer():
        return False
    if dtype.kind == "b":
        return value in (0, 1)
    return int(np.iinfo(dtype).min) <= value <= int(np.iinfo(dtype).max)


def _as_widths(pad_width: Any) -> Widths:
    """numpy's pad_width: an int, (before, after), or a sequence of such pairs."""
    try:
        if not isinstance(pad_width, (tuple, list)):
            widths = [(operator.index(pad_width),) * 2]
        elif all(isinstance(each, (tuple, list)) for each in pad_width):
            widths = [(operator.index(b), operator.index(a)) for b, a in pad_width]
        else:
            before, after = pad_width
            widths = [(operator.index(before), operator.index(after))]
    except (TypeError, ValueError):
        raise ArgumentError(
            "pad",
            "pad_width",
            "an int, (before, after), or one such pair for each axis",
            repr(pad_width),
        ) from None
    if any(n < 0 for each in widths for n in each):
        raise ArgumentError(
            "pad", "pad_width", "0 or more", repr(pad_width), "cut with x[2:-2] instead"
        )
    return tuple(widths) or ((0, 0),)


def _bordered(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """x with a border of its own elements along one axis."""
    size = x.shape[axis]
    most = {"reflect": size - 1, "circular": size}.get(mode, max(before, after) if size else 0)
    if max(before, after) > most:
        expected = f"at most {max(most, 0)} on axis {axis} of {size} elements with mode {mode!r}"
        raise ShapeError("pad", "pad_width", expected, (before, after))

    def part(start: int, stop: int | None, step: int = 1) -> Tensor:
        return getitem(x, (*[slice(None)] * axis, slice(start, stop, step)))

    def again(edge: Tensor, times: int) -> Tensor:
        return Expand(tuple([times if a == axis else -1 for a in range(x.ndim)]))(edge)

    low, high = x, x
    if mode == "circular":
        low, high = part(size - before, None), part(0, after)
    elif mode == "replicate":
        low, high = again(part(0, 1), before), again(part(size - 1, None), after)
    else:
        last = size - 2 - after
        low = part(before, 0, -1)
        high = part(size - 2, last if last >= 0 else None, -1)
    parts = [p for p, width in ((low, before), (x, 1), (high, after)) if width]
    return Concatenate(axis)(*parts)


def pad(
    x: Operand,
    pad_width: int | Pair | Widths,
    value: float = 0.0,
    mode: str = "constant",
) -> Tensor:
    """A border around an array, of one value or of the array's own elements.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    pad_width : int, (before, after), or one such pair for each axis
        As in numpy: an int or a single pair counts for every axis, also for the batch.
    value : float
        What a constant border holds.
    mode : {"constant", "reflect", "replicate", "circular"}
        What the border is made of: `value`, the array mirrored without its first or last element,
        these elements repeated, or the array's other end; axis by axis from the first.

    Returns
    -------
    Tensor
        Of the dtype of `x`.

    Raises
    ------
    ShapeError
        The number of pairs is not that of the axes, or a border is wider than the elements that
        it is made of.
    ArgumentError
        `pad_width` is negative or no integer, `value` is no number, or no such mode.
    DtypeError
        `x` holds integers, and `value` is none of theirs.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.pad([[1.0, 2.0]], ((0, 1), (1, 0))).value
    array([[0., 1., 2.],
           [0., 0., 0.]], dtype=float32)
    >>> tg.pad([1.0, 2.0, 3.0], 2, mode="reflect").value
    array([3., 2., 1., 2., 3., 2., 1.], dtype=float32)
    """
    try:
        border = float(value)
    except (TypeError, ValueError):
        raise ArgumentError("pad", "value", "a number", repr(value)) from None
    op = Pad(_as_widths(pad_width), border)
    if one_of("pad", "mode", mode, MODES) == "constant":
        return op(x)
    node = as_tensor(x)
    op.infer(Spec(node.shape, np.dtype(float)))  # as many pairs as axes
    for axis, (before, after) in enumerate(op._each(node.ndim)):
        if before or after:
            node = _bordered(node, axis, before, after, mode)
    return node
