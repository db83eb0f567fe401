"""Concatenate, stack: tensors side by side along one axis.

    T     number of tensors          L_t   size of tensor t along the axis

    concatenate    y[L_0 + ... + L_(t-1) + i] = x_t[i]
    stack          y[t] = x_t                      along a new axis
    gx_t = the part of gy that x_t went to: a view; a copy where a kernel is to read it

vstack and hstack concatenate along axis 0 and 1, and give tensors the axes that they lack for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, frozen
from tinygraph.cuda import InOut
from tinygraph.engine import Array, Memory, Operand, Shape, Spec, Tensor, integer, normalize_axes
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import documented, for_each, promote, remembered
from tinygraph.ops.common.strided import word_kernel, words
from tinygraph.ops.shaping.reshape import unsqueeze

PARTS = 8  # of one launch; the same number stands in concatenate.cu


class Places(NamedTuple):
    axis: int  # of y
    starts: Sequence[int]  # where along it each tensor begins, and where the last one ends
    shapes: Sequence[Shape]


@remembered
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
        At least one.  Where the dtypes differ, the tensors are cast to the one that
        `tg.result_type` gives, as in PyTorch.

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


@_joined
def vstack(tensors: Iterable[Operand]) -> Tensor:
    """Tensors one below the other: along axis 0, where those of one axis are rows.

    Parameters
    ----------
    tensors : sequence of Tensor
        ... A 0-d tensor is a row of one element.

    Returns
    -------
    Tensor
        At least two axes.

    Raises
    ------
    ShapeError
        The tensors differ in another size than that of axis 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.vstack([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    nodes, _ = _listed("vstack", tensors, 0)
    return Concatenate(0)(*[_with_axes(x, 2) for x in nodes])


@_joined
def hstack(tensors: Iterable[Operand]) -> Tensor:
    """Tensors one beside the other: along axis 1, or along the only axis.

    Parameters
    ----------
    tensors : sequence of Tensor
        ... A 0-d tensor has one element along its only axis.

    Returns
    -------
    Tensor
        With as many axes as the tensors, one at least.

    Raises
    ------
    ShapeError
        The tensors differ in another size than that of the axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.hstack([[1.0, 2.0], [3.0]]).shape
    (3,)
    """
    nodes, _ = _listed("hstack", tensors, 0)
    whole = [_with_axes(x, 1) for x in nodes]
    return Concatenate(0 if whole[0].ndim == 1 else 1)(*whole)


def _with_axes(x: Tensor, least: int) -> Tensor:
    """x with new axes in front, so that there are at least so many."""
    return unsqueeze(x, tuple(range(least - x.ndim))) if x.ndim < least else x
