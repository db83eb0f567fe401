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
import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from tinygraph.cuda import InOut
from tinygraph.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.getitem import getitem
from tinygraph.ops.reshape import as_sizes
from tinygraph.ops.shared.launch import for_each
from tinygraph.ops.shared.operands import promote
from tinygraph.ops.shared.strided import word_kernel, words
from tinygraph.shapes import Array, Shape, Spec, as_axis, normalize_axes
from tinygraph.tensor import Operand, Tensor, as_tensor

PARTS = 8  # of one launch; the same number stands in concatenate.cu


@frozen
class Concatenate(Op):
    axis: int = 0

    def infer(self, *specs: Spec) -> Spec:
        first = specs[0]
        (axis,) = normalize_axes(self.name, self.axis, first.ndim)
        total = 0
        for t, spec in enumerate(specs):
            _require_dtype(self.name, t, spec, first)
            if spec.ndim != first.ndim:
                raise ShapeError(
                    self.name,
                    f"tensors[{t}]",
                    f"{first.ndim} axes, as tensors[0] of shape {first.shape} has",
                    f"{spec.ndim}, shape {spec.shape}",
                    "add an axis with x[None]",
                )
            for a, (size, own) in enumerate(zip(first.shape, spec.shape, strict=True)):
                if own != size and a != axis:
                    raise ShapeError(
                        self.name,
                        f"tensors[{t}]",
                        f"size {size} on axis {a}, as in tensors[0] of shape {first.shape}",
                        f"{own}, shape {spec.shape}",
                        f"only axis {axis}, along which they are joined, may differ",
                    )
            total += spec.shape[axis]
        return Spec((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        axis = self.axis % arrays[0].ndim
        sizes = [x.shape[axis] for x in arrays]
        shape = list(arrays[0].shape)
        shape[axis] = sum(sizes)
        y = mem.empty(tuple(shape), arrays[0].dtype)
        np.concatenate(arrays, axis=axis, out=y)
        return y, list(accumulate(sizes, initial=0))

    def backward(
        self, mem: Memory, gy: Array, starts: list[int], needs: tuple[bool, ...]
    ) -> Gradients:
        before = (slice(None),) * (self.axis % gy.ndim)
        return tuple(
            [
                gy[(*before, slice(starts[t], starts[t + 1]))] if needed else None
                for t, needed in enumerate(needs)
            ]
        )

    def forward_kernel(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        axis = self.axis % arrays[0].ndim
        shape = list(arrays[0].shape)
        shape[axis] = sum([x.shape[axis] for x in arrays])
        y = mem.empty(tuple(shape), arrays[0].dtype)
        _join(mem, arrays, y, axis)
        return y, [x.shape for x in arrays]

    def backward_kernel(
        self, mem: Memory, gy: Array, shapes: list[Shape], needs: tuple[bool, ...]
    ) -> Gradients:
        return _parted(mem, gy, shapes, self.axis % gy.ndim, needs)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if all(carries) and self.axis % specs[0].ndim else None


@frozen
class Stack(Op):
    axis: int = 0

    def infer(self, *specs: Spec) -> Spec:
        first = specs[0]
        (axis,) = normalize_axes(self.name, self.axis, first.ndim + 1)
        for t, spec in enumerate(specs):
            _require_dtype(self.name, t, spec, first)
            if spec.shape != first.shape:
                raise ShapeError(
                    self.name,
                    f"tensors[{t}]",
                    f"the shape of tensors[0], {first.shape}",
                    spec.shape,
                    "tg.concatenate takes other sizes along its axis",
                )
        return Spec((*first.shape[:axis], len(specs), *first.shape[axis:]), first.dtype)

    def forward(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        first = arrays[0]
        axis = self.axis % (first.ndim + 1)
        y = mem.empty((*first.shape[:axis], len(arrays), *first.shape[axis:]), first.dtype)
        np.stack(arrays, axis=axis, out=y)
        return y, None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        before: tuple[Any, ...] = (slice(None),) * (self.axis % gy.ndim)
        return tuple([gy[(*before, t, ...)] if needed else None for t, needed in enumerate(needs)])

    def forward_kernel(self, mem: Memory, *arrays: Array) -> tuple[Array, Any]:
        axis, shape = self.axis % (arrays[0].ndim + 1), arrays[0].shape
        y = mem.empty((*shape[:axis], len(arrays), *shape[axis:]), arrays[0].dtype)
        _join(mem, arrays, y, axis)
        return y, None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        axis = self.axis % gy.ndim
        shape = (*gy.shape[:axis], *gy.shape[axis + 1 :])
        return _parted(mem, gy, [shape] * len(needs), axis, needs)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if all(carries) and self.axis % (specs[0].ndim + 1) else None


class _Group(NamedTuple):
    """The parts of one launch: matrices of the same rows, side by side in some of y's columns."""

    parts: range
    rows: int
    columns: int  # of y
    first: int  # the column in which they begin
    widths: Shape

    def launch(self, function: str, dtype: np.dtype[Any], *arrays: Any) -> None:
        together = sum(self.widths)
        n = self.rows * together
        rest = (0,) * (PARTS - len(self.widths))
        for_each(
            word_kernel("concatenate", function, dtype),
            n,
            *arrays,
            n,
            self.columns,
            self.first,
            together,
            *self.widths,
            *rest,
        )


def _groups(shapes: Sequence[Shape], axis: int) -> Iterator[_Group]:
    """Parts of these shapes, which are joined along the axis, by eights."""
    rows = math.prod(shapes[0][:axis])
    widths = tuple([math.prod(shape[axis:]) for shape in shapes])
    for begin in range(0, len(shapes), PARTS):
        parts = range(begin, min(begin + PARTS, len(shapes)))
        own = widths[parts.start : parts.stop]
        yield _Group(parts, rows, sum(widths), sum(widths[:begin]), own)


def _join(mem: Memory, arrays: Sequence[Array], y: Array, axis: int) -> None:
    """Write contiguous arrays side by side to y, along an axis that they have or that is new."""
    none, target = words(mem.empty((0,), y.dtype)), words(y)
    for group in _groups([x.shape for x in arrays], axis):
        own = [words(arrays[t]) for t in group.parts] + [none] * (PARTS - len(group.parts))
        alone = len(arrays) <= PARTS
        group.launch("concatenate_forward", y.dtype, *own, target if alone else InOut(target))


def _parted(
    mem: Memory, gy: Array, shapes: Sequence[Shape], axis: int, needs: tuple[bool, ...]
) -> Gradients:
    """The part of gy that belongs to each array; views where the parts lie one after the other."""
    gradients: list[Array | None] = [None] * len(shapes)
    none, source = words(mem.empty((0,), gy.dtype)), words(gy)
    for group in _groups(shapes, axis):
        wanted = [t for t in group.parts if needs[t]]
        if group.rows == 1:
            ends = list(accumulate(group.widths, initial=group.first))
            for t in wanted:
                begin, end = ends[t - group.parts.start :][:2]
                gradients[t] = gy.reshape(-1)[begin:end].reshape(shapes[t])
        elif wanted:
            own = [none] * PARTS
            for t in wanted:
                gx = gradients[t] = mem.empty(shapes[t], gy.dtype)
                own[t - group.parts.start] = words(gx)
            group.launch("concatenate_backward", gy.dtype, source, *own)
    return tuple(gradients)


def _require_dtype(op: str, t: int, spec: Spec, first: Spec) -> None:
    if spec.dtype != first.dtype:
        raise DtypeError(
            op,
            f"tensors[{t}]",
            f"{first.dtype}, the dtype of tensors[0]",
            spec.dtype,
            f"use tg.{op}, which promotes, or convert with .astype",
        )


def _listed(op: str, tensors: Any, axis: Any) -> tuple[tuple[Tensor, ...], int]:
    """The arguments of both public functions: tensors of one dtype, and the axis as an int."""
    if isinstance(tensors, (Tensor, np.ndarray)) or not isinstance(tensors, Iterable):
        raise ArgumentError(
            op,
            "tensors",
            "a list or tuple of tensors",
            type(tensors).__name__,
            f"write {op}([a, b])",
        )
    listed = tuple(tensors)
    if not listed:
        raise ArgumentError(op, "tensors", "at least one tensor", "none")
    try:
        place = operator.index(axis)
    except TypeError:
        raise ArgumentError(op, "axis", "an int", repr(axis)) from None
    return promote(op, *listed), place


def concatenate(tensors: Iterable[Operand], axis: int = 0) -> Tensor:
    """Tensors side by side along an axis that they have.

    Parameters
    ----------
    tensors : sequence of Tensor
        At least one; all of the same shape, but for their sizes along `axis`.  Where the dtypes
        differ, the tensors are cast to the one that numpy would promote to.
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
    ArgumentError
        `tensors` is empty or no sequence of tensors, or `axis` is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.concatenate([tg.zeros(2, 1), tg.ones(2, 2)], axis=1).value
    array([[0., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    nodes, place = _listed("concatenate", tensors, axis)
    return Concatenate(place)(*nodes)


def stack(tensors: Iterable[Operand], axis: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis.

    Parameters
    ----------
    tensors : sequence of Tensor
        At least one.  Where the dtypes differ, the tensors are cast to the one that numpy would
        promote to.
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
    ArgumentError
        `tensors` is empty or no sequence of tensors, or `axis` is no integer.

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
        raise ShapeError(
            "split",
            "sizes_or_sections",
            f"a number of sections that divides {total}, the size of the axis",
            sections,
            "list the sizes of the parts instead",
        )
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
