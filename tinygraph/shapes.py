"""Plain functions about shapes and hyper-parameters: broadcasting, axes, numbers, sliding windows.

Nothing here knows tensors or graphs.  Ops call these from `infer`, so that a rule is written once.

    H W        height and width of an image
    KH KW      kernel size          OH OW      output size
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tinygraph.errors import ArgumentError, DtypeError, ShapeError, TinygraphError

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Axis: TypeAlias = "int | Sequence[int] | None"  # as an argument
Axes: TypeAlias = "int | tuple[int, ...] | None"  # as a hyper-parameter: hashable
Pair: TypeAlias = tuple[int, int]
Padding: TypeAlias = "int | Pair | Literal['same']"

_AXES = "an int, a tuple of ints or None"  # what `axis` is expected to be


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


def as_axes(op: str, axis: Axis) -> Axes:
    """The argument `axis` as a hyper-parameter; whether there are such axes, `infer` will see."""
    if axis is None or type(axis) is int:
        return axis
    axes = integers(op, "axis", axis, _AXES, DtypeError)
    if isinstance(axis, bool):  # Python would take it for 0 or 1
        raise DtypeError(op, "axis", _AXES, axis, "name the argument that it is meant for")
    return axes if isinstance(axis, Sequence) else axes[0]


def as_axis(op: str, axis: int) -> int:
    """The argument `axis` of an op along exactly one axis."""
    if isinstance(axis, bool):
        raise DtypeError(op, "axis", "an int", axis, "name the argument that it is meant for")
    return integer(op, "axis", axis, DtypeError)


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
    for a in integers(op, "axis", axis, _AXES, DtypeError):
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


class Windows(NamedTuple):
    """Where the windows of a convolution or a pooling lie on one axis of the input.

    Output position o and kernel offset k read the input at o * stride + k * dilation - before.
    """

    kernel: int
    stride: int
    dilation: int
    before: int  # padding at the low end
    after: int  # padding at the high end; negative where a floor division leaves inputs unread
    out: int  # number of windows

    def inside(self, offset: int, size: int) -> tuple[slice, slice]:
        """For one kernel offset: the output positions whose input is real, and those inputs.

        Every other output position reads padding at this offset.
        """
        start = offset * self.dilation - self.before  # input index read by output position 0
        first = max(0, -(start // self.stride))
        last = min(self.out, (size - 1 - start) // self.stride + 1)
        if last <= first:
            return slice(0, 0), slice(0, 0)
        low = start + first * self.stride
        return slice(first, last), slice(low, start + (last - 1) * self.stride + 1, self.stride)


def windows(
    op: str,
    size: int,
    kernel: int,
    stride: int,
    padding: int | str,
    dilation: int = 1,
    ceil_mode: bool = False,
) -> Windows:
    """Lay windows over an axis of `size` elements.

    The number of windows is floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1,
    as in torch.  'same' gives ceil(size / stride) windows and puts an odd element of padding at the
    high end.  With `ceil_mode` the division rounds up, but no window starts beyond the input and
    its low padding.

    >>> windows("conv2d", 28, kernel=3, stride=1, padding=0).out
    26
    """
    span = dilation * (kernel - 1) + 1
    if padding == "same":
        out = -(-size // stride)
        total = max((out - 1) * stride + span - size, 0)
        return Windows(kernel, stride, dilation, total // 2, total - total // 2, out)
    pad = int(padding)
    room = size + 2 * pad - span
    if room < 0:
        expected = (
            f"an image of at least {span - 2 * pad} pixels on each axis that the "
            f"kernel spans (kernel {kernel}, dilation {dilation}, padding {pad})"
        )
        way_out = "use a smaller kernel, more padding or padding='same'"
        raise ShapeError(op, "x", expected, f"{size} pixels", way_out)
    out = (math.ceil if ceil_mode else math.floor)(room / stride) + 1
    if ceil_mode and (out - 1) * stride >= size + pad:
        out -= 1
    after = (out - 1) * stride + span - size - pad
    return Windows(kernel, stride, dilation, pad, after, out)
