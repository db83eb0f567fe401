"""Spec, the shape and dtype of an array; and plain functions about shapes: broadcasting, axes.

Nothing here knows tensors or graphs.  Ops call these from `infer`, so that a rule is written once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinygraph.base import ArgumentError, DtypeError, ShapeError, TinygraphError

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Axis: TypeAlias = "int | Sequence[int] | None"  # as an argument
Axes: TypeAlias = "int | tuple[int, ...] | None"  # as a hyper-parameter: hashable
Pair: TypeAlias = tuple[int, int]
Padding: TypeAlias = "int | Pair | Literal['same']"

AXES = "an int, a tuple of ints or None"  # what `axis` is expected to be


class Spec(NamedTuple):
    """What is known of an array before it is computed: its shape and its dtype."""

    shape: Shape
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)


def require_float(op: str, **specs: Spec | None) -> None:
    """Raise DtypeError unless every input that is given is float32 or float64, all of one dtype.

    Of two dtypes the float64 is named: most often it is an array that numpy made so.
    """
    first_name, first = "", None
    for name, spec in specs.items():
        if spec is None:
            continue
        if spec.dtype.char not in "fd":
            raise DtypeError(op, name, "float32 or float64", spec.dtype, "x.astype('float32')")
        if first is None:
            first_name, first = name, spec
        elif spec.dtype != first.dtype:
            wide, other = (first_name, name) if first.dtype.char == "d" else (name, first_name)
            expected = f"float32, the dtype of {other}"
            raise DtypeError(op, wide, expected, "float64", f"{wide}.astype('float32')")


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """The shape that numpy's broadcasting rule gives, or a ShapeError that shows all shapes.

    >>> broadcast_shapes("add", (4, 1), (3,))
    (4, 3)
    """
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        got = " and ".join(map(str, shapes))
        expected = "shapes that broadcast together: aligned from the right, each axis equal or 1"
        way_out = "insert axes of size 1 with reshape, or transpose"
        raise ShapeError(op, "inputs", expected, got, way_out) from None


def broadcast_axes(shape: Shape, out: Shape) -> tuple[int, ...]:
    """The axes of `out` along which an input of `shape` was repeated: backward sums over them.

    >>> broadcast_axes((4, 1), (2, 4, 3))
    (0, 2)
    """
    new = len(out) - len(shape)
    stretched = (new + i for i, n in enumerate(shape) if n == 1 and out[new + i] != 1)
    return (*range(new), *stretched)


def integer(op: str, argument: str, value: Any, error: type[TinygraphError] = ArgumentError) -> int:
    """An integer of any kind as Python's; anything else is an error."""
    try:
        return operator.index(value)
    except TypeError:
        raise error(op, argument, "an int", repr(value)) from None


def integers(
    op: str,
    argument: str,
    value: Any,
    expected: str = "an int or a tuple of ints",
    error: type[TinygraphError] = ArgumentError,
) -> tuple[int, ...]:
    """An int, or a sequence of them, as a tuple of Python's ints; anything else is an error.

    >>> integers("reshape", "shape", 3), integers("reshape", "shape", [2, -1])
    ((3,), (2, -1))
    """
    try:
        listed = value if isinstance(value, Sequence) else (value,)
        return tuple([operator.index(n) for n in listed])
    except TypeError:
        raise error(op, argument, expected, repr(value)) from None


def normalize_axes(op: str, axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Axes as sorted non-negative numbers; None stands for all of them.

    >>> normalize_axes("sum", -1, 3), normalize_axes("sum", None, 2)
    ((2,), (0, 1))
    """
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(axes_in_order(op, axis, ndim)))


def axes_in_order(op: str, axis: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes as non-negative numbers, each once, in the order in which they are given.

    >>> axes_in_order("movedim", (-1, 0), 3)
    (2, 0)
    """
    normal = []
    for a in integers(op, "axis", axis, AXES, DtypeError):
        if not -ndim <= a < ndim:
            allowed = f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis: the input is 0-d"
            raise ShapeError(op, "axis", allowed, a)
        normal.append(a % ndim)
    if len(set(normal)) < len(normal):
        raise ShapeError(op, "axis", "each axis once", axis)
    return tuple(normal)


def reduced_shape(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """`shape` with `axes` dropped, or kept with size 1.

    >>> reduced_shape((2, 3, 4), (1,), keepdims=True)
    (2, 1, 4)
    """
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)
