"""Concatenate, stack, split: tensors side by side along one axis, and one tensor cut along it.

    T     number of tensors          L_t   size of tensor t along the axis

    concatenate    y[L_0 + ... + L_(t-1) + i] = x_t[i]
    stack          y[t] = x_t                      along a new axis
    gx_t = the part of gy that x_t went to: a view; a copy where a kernel is to read it

    split          y_t[i] = x[L_0 + ... + L_(t-1) + i]

An op has one output, so split is T slices, each a node `getitem`; it adds nothing to the engine.
The gradient of x is the sum of those of its slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.cuda import InOut
from tinygraph.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.getitem import getitem
from tinygraph.ops.reshape import as_sizes
from tinygraph.ops.shared.docstrings import documented
from tinygraph.ops.shared.launch import for_each
from tinygraph.ops.shared.operands import promote
from tinygraph.ops.shared.strided import word_kernel, words
from tinygraph.shapes import Array, Shape, Spec, as_axis, integer, normalize_axes
from tinygraph.tensor import Operand, Tensor, as_tensor

PARTS = 8  # of one launch; the same number stands in concatenate.cu


class Places(NamedTuple):
    axis: int  # of y
    starts: Sequence[int]  # where along it each tensor begins, and where the last one ends
    shapes: Sequence[Shape]


@lru_cache(maxsize=1024)
def _places(axis: int, is_new: bool, *shapes: Shape) -> tuple[Shape, Places]:
    """The shape of y, and how tensors of these shapes lie in it; is_new: they lack the axis."""
    first = shapes[0]
    axis %= len(first) + is_new
    starts: Sequence[int] = range(len(shapes) + 1)
    if not is_new:
        starts = list(accumulate([shape[axis] for shape in shapes], initial=0))
    shape = *first[:axis], starts[-1], *first[axis + (not is_new) :]
    return shape, Places(axis, starts, shapes)


@frozen
class Concatenate(Op):
    axis: int = 0

    is_new: ClassVar[bool] = False  # the axis: y has it, and the tensors do not
    join: ClassVar[Callable[..., Array]] = staticmethod(np.concatenate)

    def infer(self, *specs: Spec) -> Spec:
        first = specs[0]
        (axis,) = normalize_axes(self.name, self.axis, first.ndim + self.is_new)
        for t, spec in enumerate(specs):
            if spec != first:
                self._require_like_first(t, spec, first, axis)
        shapes = [spec.shape for spec in specs]
        return Spec(_places(self.axis, self.is_new, *shapes)[0], first.dtype)

    def _require_like_first(self, t: int, spec: Spec, first: Spec, axis: int) -> None:
        argument = f"tensors[{t}]"
        if spec.dtype != first.dtype:
            expected = f"{first.dtype}, the dtype of tensors[0]"
            way_out = f"use tg.{self.name}, which promotes, or convert with .astype"
            raise DtypeError(self.name, argument, expected, spec.dtype, way_out)
        expected = f"the shape of tensors[0], {first.shape}"
        if self.is_new:
            way_out = "tg.concatenate takes other sizes along its axis"
            raise ShapeError(self.name, argument, expected, spec.shape, way_out)
        others = [(s[:axis], s[axis + 1 :], len(s)) for s in (spec.shape, first.shape)]
        if others[0] != others[1]:
            expected += f", but on axis {axis}"
            way_out = "add axes with x[None], or cut it"
            raise ShapeError(self.name, argument, expected, spec.shape, way_out)

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        shape, places = _places(self.axis, self.is_new, *[x.shape for x in arrays])
        y = mem.empty(shape, arrays[0].dtype)
        self.join(arrays, axis=places.axis, out=y)
        return y, places

    def backward(self, mem: Memory, gy: Array, saved: Places, needs: Needs) -> Gradients:
        axis, starts, _ = saved
        before: tuple[Any, ...] = (slice(None),) * axis
        at = starts if self.is_new else [slice(a, b) for a, b in pairwise(starts)]
        parts = zip(at, needs, strict=False)
        return tuple([gy[(*before, place, ...)] if needed else None for place, needed in parts])

    def forward_kernel(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        shape, places = _places(self.axis, self.is_new, *[x.shape for x in arrays])
        y = mem.empty(shape, arrays[0].dtype)
        _move(mem, "concatenate_forward", arrays, y, places)
        return y, places

    def backward_kernel(self, mem: Memory, gy: Array, saved: Places, needs: Needs) -> Gradients:
        axis, starts, shapes = saved
        if math.prod(gy.shape[:axis]) == 1:  # the parts lie one after the other: views
            flat, size = gy.reshape(-1), math.prod(gy.shape[axis + 1 :])
            parts = zip(pairwise(starts), shapes, needs, strict=True)
            return tuple(
                [flat[a * size : b * size].reshape(s) if n else None for (a, b), s, n in parts]
            )
        made = zip(shapes, needs, strict=True)
        gradients = [mem.empty(s, gy.dtype) if needed else None for s, needed in made]
        _move(mem, "concatenate_backward", gradients, gy, saved)
        return tuple(gradients)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if all(carries) and self.axis % (specs[0].ndim + self.is_new) else None


@frozen
class Stack(Concatenate):
    is_new: ClassVar[bool] = True
    join: ClassVar[Callable[..., Array]] = staticmethod(np.stack)


def _move(
    mem: Memory,
    function: str,
    parts: Sequence[Array | None],
    y: Array,
    places: Places,
) -> None:
    """Copy contiguous parts, side by side, to y or from it, by eights; None is left out.

    To the kernel all are matrices: the rows are the axes before the one that joins them.
    """
    axis, _, shapes = places
    rows, widths = math.prod(shapes[0][:axis]), [math.prod(shape[axis:]) for shape in shapes]
    kernel = word_kernel("concatenate", function, y.dtype)
    none, whole = words(mem.empty((0,), y.dtype)), words(y)
    for begin in range(0, len(parts), PARTS):
        own, wide = parts[begin : begin + PARTS], widths[begin : begin + PARTS]
        if all(part is None for part in own):
            continue
        rest, n = PARTS - len(own), rows * sum(wide)
        arrays: list[Any] = [none if part is None else words(part) for part in own] + [none] * rest
        if function == "concatenate_backward":
            arrays = [whole, *arrays]
        else:
            arrays = [*arrays, whole if len(parts) <= PARTS else InOut(whole)]
        columns = sum(widths), sum(widths[:begin]), sum(wide)  # of y, those before, of these parts
        for_each(kernel, n, *arrays, n, *columns, *wide, *[0] * rest)


def _listed(op: str, tensors: Any, axis: Any) -> tuple[tuple[Tensor, ...], int]:
    """The arguments of both public functions: tensors of one dtype, and the axis as an int."""
    if isinstance(tensors, (Tensor, np.ndarray)) or not isinstance(tensors, Iterable):
        got = type(tensors).__name__
        raise ArgumentError(op, "tensors", "a list or tuple of tensors", got, f"write {op}([a, b])")
    listed = tuple(tensors)
    if not listed:
        raise ArgumentError(op, "tensors", "at least one tensor", "none")
    return promote(op, *listed), integer(op, "axis", axis)


_joined = documented(
    """
    Parameters
    ----------
    tensors : sequence of Tensor
        At least one.  Where the dtypes differ, the tensors are cast to the one that numpy would
        promote to.

    Raises
    ------
    ArgumentError
        `tensors` is empty or no sequence of tensors, or `axis` is no integer.
    """
)


@_joined
def concatenate(tensors: Iterable[Operand], axis: int = 0) -> Tensor:
    """Tensors side by side along an axis that they have.

    Parameters
    ----------
    tensors : sequence of Tensor
        ... All have the same shape, but for their sizes along `axis`.
    axis : int
        The axis to join along.

    Returns
    -------
    Tensor
        Along `axis`, as large as all tensors together.

    Raises
    ------
    ShapeError
        A tensor has another rank or another size than the first, or there is no such axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.concatenate([tg.zeros(2, 1), tg.ones(2, 2)], axis=1).value
    array([[0., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    nodes, place = _listed("concatenate", tensors, axis)
    return Concatenate(place)(*nodes)


@_joined
def stack(tensors: Iterable[Operand], axis: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis.

    Parameters
    ----------
    axis : int
        Where the new axis comes to lie in the result.

    Returns
    -------
    Tensor
        With one axis more than the tensors; its size is their number.

    Raises
    ------
    ShapeError
        A tensor has another shape than the first, or there is no such place for an axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.stack([tg.zeros(2), tg.ones(2)], axis=1).value
    array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    nodes, place = _listed("stack", tensors, axis)
    return Stack(place)(*nodes)


def _part_sizes(total: int, sizes_or_sections: Any) -> Shape:
    """The sizes of the parts of an axis of `total` elements."""
    given = as_sizes("split", "sizes_or_sections", sizes_or_sections)
    if isinstance(sizes_or_sections, (tuple, list)):
        if min(given, default=0) < 0 or sum(given) != total or not given:
            raise ShapeError(
                "split",
                "sizes_or_sections",
                f"sizes of 0 or more with sum {total}, the size of the axis",
                f"{given} with sum {sum(given)}",
            )
        return given
    sections = given[0]
    if sections < 1 or total % sections:
        expected = f"a number of sections that divides {total}, the size of the axis"
        way_out = "list the sizes of the parts instead"
        raise ShapeError("split", "sizes_or_sections", expected, sections, way_out)
    return (total // sections,) * sections


def split(x: Operand, sizes_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """x cut into parts along one axis.

    Parameters
    ----------
    x : Tensor
        At least one axis; any dtype.
    sizes_or_sections : int or sequence of int
        A list holds the size of each part.  An int is the number of parts, all of one size: as in
        numpy, where torch takes it for their size.
    axis : int
        The axis to cut.  Along the batch, the parts are fixed for the batch size that `x` has now.

    Returns
    -------
    tuple of Tensor
        The parts in order, of the dtype of `x`; views.

    Raises
    ------
    ShapeError
        There is no such axis, the sizes do not add up to its size, or their number does not divide
        it.
    ArgumentError
        A size that is no integer.
    DtypeError
        `axis` is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> first, rest = tg.split([1.0, 2.0, 3.0], [1, 2])
    >>> rest.value, [part.shape for part in tg.split(tg.zeros(2, 6), 3, axis=1)]
    (array([2., 3.], dtype=float32), [(2, 2), (2, 2), (2, 2)])
    """
    node = as_tensor(x)
    (place,) = normalize_axes("split", as_axis("split", axis), node.ndim)
    ends = list(accumulate(_part_sizes(node.shape[place], sizes_or_sections), initial=0))
    before = (slice(None),) * place
    return tuple([getitem(node, (*before, slice(a, b))) for a, b in pairwise(ends)])
