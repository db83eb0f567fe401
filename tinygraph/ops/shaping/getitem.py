"""Indexing: x[index] with integers, slices, new axes, an Ellipsis and integer arrays, as in numpy.

    y[k]   = x[p(k)]                          p: the index, from positions in y to positions in x
    gx[q]  = sum of gy[k] over all k with p(k) = q

Without index arrays p takes no element twice, and y is a view; kernels read contiguous arrays, so
there it is a copy unless its elements lie side by side.  An index array may name an element several
times; then its gradients add up, in the row-major order of y, so that runs repeat bit for bit.

Where index arrays (and integers beside them) stand side by side, their joint axes take their place;
where something stands between them, the joint axes come first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, frozen, unmasked
from tinygraph.cuda import InOut, Kernel, op_kernel
from tinygraph.engine import Array, Memory, Operand, Shape, Spec, Tensor, broadcast_shapes
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import add_where, for_each
from tinygraph.ops.common.strided import (
    Axis,
    Strided,
    axis_arguments,
    merged,
    read,
    steps_of,
    word_kernel,
    words,
    write,
)


class Slice(NamedTuple):
    """A slice that can be a key: Python's own has no hash before version 3.12."""

    start: int | None = None
    stop: int | None = None
    step: int | None = None


ALL = Slice()


class IndexArray:
    """An integer array of at least one axis that cannot be changed and can be a key."""

    __slots__ = ("array", "high", "low")

    def __init__(self, array: Array) -> None:
        self.low, self.high = (int(array.min()), int(array.max())) if array.size else (0, -1)
        self.array = np.array(array, np.intp, order="C")
        self.array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndexArray):
            return NotImplemented
        return np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return f"IndexArray({self.array.tolist()})"


class Layout(NamedTuple):
    """How the axes of y come from those of x."""

    kept: list[tuple[range, int]]  # positions read, and the axis of x; -1 for a new axis
    picked: list[tuple[Any, int]]  # an integer or index array, and the axis of x
    at: int  # the joint axes of the index arrays come before this many kept ones


@frozen
class Getitem(Op):
    index: tuple[Any, ...]  # int, Slice, None, IndexArray, and exactly one Ellipsis

    @cached_property
    def _native(self) -> tuple[Any, ...]:
        """The index as numpy takes it."""
        arrays = [e.array if isinstance(e, IndexArray) else e for e in self.index]
        return tuple([slice(*e) if isinstance(e, Slice) else e for e in arrays])

    @cached_property
    def _joint(self) -> Shape | None:
        """The shape of the index arrays broadcast together; None where there is none."""
        shapes = [e.array.shape for e in self.index if isinstance(e, IndexArray)]
        return broadcast_shapes(self.name, *shapes) if shapes else None

    @cached_property
    def _separated(self) -> bool:
        """Whether something stands between index arrays, or an array and an integer."""
        places = [i for i, e in enumerate(self.index) if isinstance(e, (int, IndexArray))]
        return bool(places) and places[-1] - places[0] >= len(places)

    def _aligned(self, shape: Shape) -> list[Any]:
        """The entries with slices in the place of the Ellipsis: one for each axis, and new axes."""
        used = len(self.index) - 1 - self.index.count(None)
        if used > len(shape):
            expected = f"at most {len(shape)} entries for shape {shape}"
            raise ShapeError(self.name, "index", expected, used, "new axes are written as None")
        dots = self.index.index(...)
        return [*self.index[:dots], *[ALL] * (len(shape) - used), *self.index[dots + 1 :]]

    def _layout(self, shape: Shape) -> Layout:
        kept: list[tuple[range, int]] = []
        picked: list[tuple[Any, int]] = []
        at, axis = None, 0
        for entry in self._aligned(shape):
            if entry is None:
                kept.append((range(1), -1))
                continue
            size = shape[axis]
            if isinstance(entry, Slice):
                kept.append((range(*slice(*entry).indices(size)), axis))
            else:
                self._require_inside(entry, axis, shape)
                at = len(kept) if at is None else at
                picked.append((entry, axis))
            axis += 1
        return Layout(kept, picked, 0 if self._separated else at or 0)

    def _require_inside(self, entry: int | IndexArray, axis: int, shape: Shape) -> None:
        size = shape[axis]
        low, high = (entry, entry) if isinstance(entry, int) else (entry.low, entry.high)
        if high >= size or low < -size:
            allowed = f"an integer from {-size} to {size - 1}" if size else "none: it is empty"
            expected = f"for axis {axis} of size {size}, {allowed}"
            got = high if high >= size else low
            raise ShapeError(self.name, "index", expected, got, f"x has shape {shape}")

    def infer(self, x: Spec) -> Spec:
        layout = self._layout(x.shape)
        out = [len(positions) for positions, _ in layout.kept]
        out[layout.at : layout.at] = self._joint or ()
        return Spec(tuple(out), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        if self._joint is None:
            return x[self._native], x.shape
        y = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, x.dtype)
        axis = self._single_axis(x.ndim)
        if axis is not None and x.flags.c_contiguous:  # take would copy any other x first
            array = next(e.array for e in self.index if isinstance(e, IndexArray))
            np.take(x, array, axis=axis, out=y, mode="wrap")  # in range: only -1 is to wrap
        else:
            y[...] = x[self._native]
        return y, x.shape

    def _single_axis(self, ndim: int) -> int | None:
        """The axis of the index array, where everything else is taken whole."""
        entries = self._aligned((0,) * ndim)
        others = [e for e in entries if not isinstance(e, IndexArray)]
        if len(others) != len(entries) - 1 or others.count(ALL) != len(others):
            return None
        return next(i for i, e in enumerate(entries) if isinstance(e, IndexArray))

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        if self._joint is None:
            if gy.size == math.prod(shape) and not self._reverses():  # only new axes, say
                return (gy.reshape(shape),)
            gx = mem.zeros(shape, gy.dtype)
            gx[self._native] = gy
            return (gx,)
        gx = mem.zeros(shape, gy.dtype)
        positions = self._positions(shape).reshape(-1)
        add_where(mem, gx.reshape(-1, 1), positions, gy.reshape(-1, 1))
        return (gx,)

    def _reverses(self) -> bool:
        return any(isinstance(e, Slice) and (e.step or 1) < 0 for e in self.index)

    def _positions(self, shape: Shape) -> Array:
        """For each element of y, its row-major position in x."""
        layout, strides, joint = self._layout(shape), steps_of(shape), self._joint or ()
        count = len(layout.kept)
        total: Any = self._offsets(layout, shape).reshape(*joint, *[1] * (count - layout.at))
        for k, (positions, axis) in enumerate(layout.kept):
            steps = np.arange(positions.start, positions.stop, positions.step, dtype=np.intp)
            steps *= strides[axis] if axis >= 0 else 0
            later = count - k - 1 + (len(joint) if k < layout.at else 0)
            total = total + steps.reshape(-1, *[1] * later)
        return total

    def _offsets(self, layout: Layout, shape: Shape) -> Array:
        """What integers and index arrays add to a position in x: an array of their joint shape."""
        strides, total = steps_of(shape), np.zeros(self._joint or (), np.intp)
        for entry, axis in layout.picked:
            where = entry.array if isinstance(entry, IndexArray) else entry
            total += where % shape[axis] * strides[axis]
        return total

    # ---- kernels ------------------------------------------------------------------------------

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        out = self.infer(Spec(x.shape, x.dtype)).shape
        if not math.prod(out) or self._joint is None:
            elements = self._elements(x.shape) if math.prod(out) else Strided(0, ())
            return read(mem, x, elements, out), x.shape
        y = mem.empty(out, x.dtype)
        picks, behind = math.prod(self._joint), self._behind(x.shape)
        kernel = word_kernel("getitem", "getitem_forward", x.dtype)
        offset = _table(mem, self._offsets(self._layout(x.shape), x.shape).reshape(-1))
        pieces = list(self._elements(x.shape, picks).pieces())
        target = words(y) if len(pieces) == 1 else InOut(words(y))
        _launch(kernel, pieces, (words(x), offset, target), (picks, behind))
        return y, x.shape

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        if self._joint is None and gy.size == math.prod(shape) and not self._reverses():
            return (gy.reshape(shape),)
        gx = mem.zeros(shape, gy.dtype)
        if not gy.size:
            return (gx,)
        if self._joint is None:
            write(gy, gx, self._elements(shape))
            return (gx,)
        offset, start, order = [_table(mem, table) for table in self._sums(shape)]
        picks, distinct, behind = math.prod(self._joint), offset.size, self._behind(shape)
        kernel = op_kernel("getitem", "getitem_backward", gy.dtype)
        pieces = self._elements(shape, distinct).pieces()
        arrays = gy, offset, start, order, InOut(gx)
        _launch(kernel, pieces, arrays, (picks, distinct, behind))
        return (gx,)

    def _elements(self, shape: Shape, picks: int | None = None) -> Strided:
        """The elements that the slices take; with picks, these are an axis of step 0."""
        layout, steps = self._layout(shape), steps_of(shape)
        axes = [Axis(len(p), p.step * steps[axis] if axis >= 0 else 0) for p, axis in layout.kept]
        first = sum([p.start * steps[axis] for p, axis in layout.kept if axis >= 0])
        if picks is None:
            first += int(self._offsets(layout, shape))
        else:
            axes.insert(layout.at, Axis(picks, 0))
        return Strided(first, merged(axes))

    def _behind(self, shape: Shape) -> int:
        """How many elements of y lie behind each pick: those of the axes further in."""
        layout = self._layout(shape)
        return math.prod([len(positions) for positions, _ in layout.kept[layout.at :]])

    def _sums(self, shape: Shape) -> tuple[Array, Array, Array]:
        """The distinct offsets, where the picks of each start in the order, and the order.

        The order of picks by their offsets, and among equals by their place.
        """
        offsets = self._offsets(self._layout(shape), shape).reshape(-1)
        order = np.argsort(offsets, kind="stable")
        distinct, start = np.unique(offsets[order], return_index=True)
        return distinct, np.append(start, offsets.size), order

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        shape = specs[0].shape
        joint_first = self._joint is not None and self._layout(shape).at == 0
        return "map" if self._aligned(shape)[:1] == [ALL] and not joint_first else None


def _launch(
    kernel: Kernel, pieces: Iterable[Strided], arrays: tuple[Any, ...], numbers: tuple[int, ...]
) -> None:
    """One launch for each piece, which takes up where the one before it has ended."""
    begin = 0
    for piece in pieces:
        walk = piece.size, begin, piece.first, *numbers, *axis_arguments(piece.axes)
        for_each(kernel, piece.size, *arrays, *walk)
        begin += piece.size


def _table(mem: Memory, numbers: Array) -> Array:
    """Numbers that are part of the op, as int64 where the kernels are."""
    return mem.constant(np.array(numbers, np.int64, order="C"))


def as_index(index: Any) -> tuple[Any, ...]:
    """What stands between the brackets, in the immutable form that `Getitem` holds."""
    parts = index if isinstance(index, tuple) else (index,)
    entries = [part if type(part) is int else _entry(part) for part in parts]
    dots = sum([e is ... for e in entries])
    if dots > 1:
        raise ArgumentError("getitem", "index", "at most one Ellipsis (...)", dots)
    return tuple(entries) if dots else (*entries, ...)


def _entry(part: Any) -> Any:
    """One entry: None, Ellipsis, an int, a Slice or an IndexArray."""
    if part is None or part is ...:
        return part
    if isinstance(part, slice):
        return _slice(part)
    unmasked("getitem", "index", part)
    try:
        array = part.numpy() if isinstance(part, Tensor) else np.asarray(part)
    except (TypeError, ValueError) as error:
        got = f"{part!r:.80} ({error})"
        raise ArgumentError("getitem", "index", "a rectangular list of integers", got) from None
    if not array.size and isinstance(part, (list, tuple)):
        array = array.astype(np.intp)  # an empty list has no floats, whatever numpy calls it
    if array.dtype.kind not in "iu":
        got, way_out = f"{part!r:.80} ({array.dtype})", "convert with .astype('int64')"
        if array.dtype.kind == "b":
            got = "a boolean mask: its size depends on data, and the shape of a node must not"
            way_out = "tg.where(mask, x, 0), or integers from np.nonzero(mask)"
        expected = "integers, slices, None, Ellipsis or integer arrays"
        raise DtypeError("getitem", "index", expected, got, way_out)
    return IndexArray(array) if array.ndim else int(array)


def _slice(part: slice) -> Slice:
    bounds = [b.item() if isinstance(b, Tensor) else b for b in (part.start, part.stop, part.step)]
    try:
        start, stop, step = [None if b is None else operator.index(b) for b in bounds]
    except TypeError:
        raise DtypeError("getitem", "index", "a slice of integers", part) from None
    if step == 0:
        raise ArgumentError("getitem", "index", "a step other than 0", part)
    whole = not start and stop is None and step in (None, 1)
    return ALL if whole else Slice(start, stop, step)


def getitem(x: Operand, index: Any) -> Tensor:
    """Elements of x by position: the function behind `x[index]`.

    Parameters
    ----------
    x : Tensor
        Any shape and dtype.
    index : int, slice, None, Ellipsis, integer array, or a tuple of them
        As in numpy.  Integer arrays may be numpy arrays, lists or integer tensors; they are read
        now and copied, and are no inputs of the graph.  They may name an element several times:
        its gradients add up.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view unless `index` has an integer array.

    Raises
    ------
    ShapeError
        A position out of range, more entries than axes, or arrays that do not broadcast together.
    DtypeError
        A boolean mask, whose count of elements depends on data, or floats.
    ArgumentError
        A step of 0, or two Ellipses.

    References
    ----------
    Harris et al., "Array programming with NumPy", Nature 585, 2020.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.getitem(x, (slice(None), 0)).value, x[[1, 1, 0], ::-1].value
    (array([1., 3.], dtype=float32), array([[4., 3.],
           [4., 3.],
           [2., 1.]], dtype=float32))
    """
    return Getitem(as_index(index))(x)
