"""Arguments of ops, checked: axes, pairs, padding, images, ranges.  `infer` asks here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError
from tinygraph.engine import Array, Axes, Axis, Pair, Spec, integer, integers, require_float
from tinygraph.engine.spec import AXES


def require_ndim(op: str, argument: str, spec: Spec, ndim: int, legend: str) -> None:
    """Raise ShapeError unless `spec` has `ndim` axes; `legend` names them: '(N, C, H, W)'."""
    if len(spec.shape) != ndim:
        got = f"{spec.ndim} axes, shape {spec.shape}"
        way_out = "reshape it, or add an axis with x[None]"
        raise ShapeError(op, argument, f"{ndim} axes {legend}", got, way_out)


def require_indices(op: str, indices: Spec, order: str) -> None:
    """Raise DtypeError unless `indices` are integers; `order` says which argument comes first."""
    if indices.dtype.kind not in "iu":
        way_out = f"{order}; convert with .astype('int64')"
        raise DtypeError(op, "indices", "integers", indices.dtype, way_out)


def require_images(op: str, x: Spec, empty: bool = True) -> None:
    """Raise unless `x` is float images (N, C, H, W); `empty` allows those without a pixel."""
    require_float(op, x=x)
    require_ndim(op, "x", x, 4, "(N, C, H, W)")
    if not empty and not (x.shape[2] and x.shape[3]):
        raise ShapeError(op, "x", "images of at least one pixel", x.shape)


def require_bias(op: str, b: Spec | None, outputs: int) -> None:
    """Raise ShapeError unless there is no bias, or one number for each row or filter of w."""
    if b is not None and b.shape != (outputs,):
        expected = f"shape ({outputs},), one number for each of w.shape[0]"
        raise ShapeError(op, "b", expected, b.shape, "reshape it, or pass b=None")


def as_axes(op: str, axis: Axis) -> Axes:
    """The argument `axis` as a hyper-parameter; whether there are such axes, `infer` will see."""
    if axis is None or type(axis) is int:
        return axis
    axes = integers(op, "axis", axis, AXES, DtypeError)
    if isinstance(axis, bool):  # Python would take it for 0 or 1
        raise DtypeError(op, "axis", AXES, axis, "name the argument that it is meant for")
    return axes if isinstance(axis, Sequence) else axes[0]


def as_axis(op: str, axis: int) -> int:
    """The argument `axis` of an op along exactly one axis."""
    if isinstance(axis, bool):
        raise DtypeError(op, "axis", "an int", axis, "name the argument that it is meant for")
    return integer(op, "axis", axis, DtypeError)


def pair(op: str, argument: str, value: Any, minimum: int = 1) -> Pair:
    """An int or two ints as (vertical, horizontal), each at least `minimum`.

    >>> pair("conv2d", "stride", 2)
    (2, 2)
    """
    both = value if isinstance(value, (tuple, list)) else (value, value)
    expected = "an int or a pair of ints"
    if len(both) != 2:
        raise ArgumentError(op, argument, expected, repr(value))
    vertical, horizontal = integers(op, argument, both, expected)
    if min(vertical, horizontal) < minimum:
        raise ArgumentError(op, argument, f"at least {minimum}", repr(value))
    return vertical, horizontal


def padding_2d(op: str, value: Any) -> Pair | Literal["same"]:
    """The argument `padding` of windowed ops: an int, two ints, or the words 'same' and 'valid'."""
    if isinstance(value, str):
        if value == "valid":
            return 0, 0
        if value != "same":
            expected = "an int, a pair of ints, 'same' or 'valid'"
            raise ArgumentError(op, "padding", expected, repr(value))
        return "same"
    return pair(op, "padding", value, minimum=0)


def require_range(
    op: str,
    argument: str,
    x: Array,
    low: float,
    high: float,
    expected: str,
    way_out: str,
    also: float | None = None,
) -> None:
    """Raise ArgumentError about the first number below `low` or above `high` that is not `also`."""
    if not x.size or (x.min() >= low and x.max() <= high):
        return
    bad = (x < low) | (x > high)
    if also is not None:
        bad &= x != also
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        raise ArgumentError(op, argument, expected, f"{x[where]} at index {where}", way_out)
