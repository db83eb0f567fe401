"""Maximum and minimum over axes, and their places.

    R     the elements that meet in one element of the output, row by row over the reduced axes

    amax    y[k] = max over r in R of x[k, r]       m[k] = how many elements of R are equal to y[k]
    amin    y[k] = min over r in R of x[k, r]

    gx[k, r] = gy[k] / m[k] where x[k, r] = y[k], else 0

    argmax, argmin    r*[k], the first such r, as its number within R

Equal elements share the gradient: the mean of the directions in which y may grow.  A NaN counts as
larger, or smaller, than everything, so that it shows, and NaNs count as equal.

max and min of all elements are amax and amin.  Along one axis they give values and places, and the
gradient goes to the places.  An op has one output: x is gone over once, for the places, and the
values are gathered from there, one element for each output.

Source: https://docs.pytorch.org/docs/stable/generated/torch.amax.html (how equal elements share).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen
from tinygraph.cuda import Kernel, op_kernel
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor, as_tensor
from tinygraph.engine.spec import Array, Axis, Spec, normalize_axes, require_float
from tinygraph.ops.common import arranged, as_axes, as_axis, as_int64, documented, sets_of
from tinygraph.ops.elementwise.arithmetic import maximum, minimum
from tinygraph.ops.reductions.reductions import Reduction, reduction, spread
from tinygraph.ops.shaping.gather import Gather
from tinygraph.ops.shaping.reshape import Squeeze


class ValuesAndIndices(NamedTuple):
    """What a function that picks elements along an axis gives: the elements, and their places."""

    values: Tensor
    indices: Tensor


class _Extreme(Reduction):
    """Mixed into the ops below: an order of numbers, and how kernels find the first one in it."""

    kernel_order: ClassVar[str]  # in max.cu

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        axes, shape = self.over(x.shape)
        if 0 in x.shape and not all(x.shape[a] for a in axes):
            expected = f"at least one element along axis {self.axis}"
            way_out = "give x an element there, for example with tg.pad"
            raise ShapeError(self.name, "x", expected, x.shape, way_out)
        return Spec(shape, x.dtype)

    def leaders(self, mem: Memory, x: Array, mark: str | None) -> tuple[Array, Array, Array]:
        """x as kernels take it, its extremes, and the places of the "First" or their "Ties"."""
        axes, shape = self.over(x.shape)
        sets = sets_of(x.shape, axes)
        compared = x if x.dtype.kind == "f" or x.dtype == np.uint64 else as_int64(mem, x)
        source = given = arranged(mem, compared, axes)
        marks = mem.empty((0,), np.int64)  # of the elements: the first stage makes them
        order = self.kernel_order, mark or "First"
        kernel = op_kernel("max", "extreme_forward", source.dtype, *order)
        while sets.slices > 1:
            leaders = mem.empty((sets.outputs, sets.slices), source.dtype)
            their_marks = mem.empty(leaders.shape, np.int64)
            sets.launch(kernel, source, marks, leaders, their_marks)
            source, marks, sets = leaders, their_marks, sets.parts()
        y = mem.empty(shape, source.dtype)
        found = mem.empty(shape if mark else (0,), np.int64)
        sets.launch(kernel, source, marks, y, found)
        return given, y, found


def _ends(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest number of a dtype that is not floating."""
    if dtype.kind == "b":
        return False, True
    return np.iinfo(dtype).min, np.iinfo(dtype).max


@frozen
class Max(_Extreme, Op):
    extreme: ClassVar[Any] = np.maximum
    kernel_order: ClassVar[str] = "Larger"

    def beyond(self, dtype: np.dtype[Any]) -> Any:
        """What every number wins against."""
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else _ends(dtype)
        return low if self.extreme is np.maximum else high

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, x.dtype)
        # Without `initial` numpy before 2.2 goes wrong along an axis that runs backwards.
        first = self.beyond(x.dtype)
        self.extreme.reduce(x, axis=axes, out=y, keepdims=self.keepdims, initial=first)
        return y, (x, y) if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, y = saved
        axes, _ = self.over(x.shape)
        equal = np.equal(x, spread(y, x.shape, axes), out=mem.empty(x.shape, bool))
        equal |= np.isnan(x)  # then y is NaN too
        ties = np.sum(equal, axis=axes, dtype=np.int64, keepdims=self.keepdims).astype(gy.dtype)
        gx = mem.zeros(x.shape, gy.dtype)
        np.copyto(gx, spread(gy / ties, x.shape, axes), where=equal)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        if mem.needs[0]:
            source, y, ties = self.leaders(mem, x, "Ties")
            return y, (x.shape, source, y, ties)
        _, y, _ = self.leaders(mem, x, None)
        if y.dtype != x.dtype:
            y, wide = mem.empty(y.shape, x.dtype), y
            y[...] = wide
        return y, None

    def kernel(self, function: str, dtype: np.dtype[Any]) -> Kernel:
        return op_kernel("max", f"extreme_{function}", dtype)


@frozen
class Min(Max):
    extreme: ClassVar[Any] = np.minimum
    kernel_order: ClassVar[str] = "Smaller"


@frozen
class Argmax(_Extreme, Op):
    first_extreme: ClassVar[Any] = staticmethod(np.argmax)
    kernel_order: ClassVar[str] = "Larger"

    def infer(self, x: Spec) -> Spec:
        return Spec(super().infer(x).shape, np.dtype(np.int64))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        places = mem.empty(self.over(x.shape)[1], np.int64)
        self.first_extreme(x, self.axis, places, keepdims=self.keepdims)
        return places, None

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return self.leaders(mem, x, "First")[2], None

    backward_kernel: Any = Op.backward_kernel  # places have no derivative


@frozen
class Argmin(Argmax):
    first_extreme: ClassVar[Any] = staticmethod(np.argmin)
    kernel_order: ClassVar[str] = "Smaller"


@reduction
def amax(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.

    Returns
    -------
    Tensor
        ... A NaN shows.  Several maxima share the gradient evenly.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or there is nothing to take a maximum of.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.amax([[1.0, 5.0], [3.0, 2.0]], axis=1).value
    array([5., 3.], dtype=float32)
    """
    return Max(as_axes("amax", axis), bool(keepdims))(x)


@reduction
def amin(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.

    Returns
    -------
    Tensor
        ... A NaN shows.  Several minima share the gradient evenly.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or there is nothing to take a minimum of.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.amin([[1.0, 5.0], [3.0, 2.0]], axis=1).value
    array([1., 2.], dtype=float32)
    """
    return Min(as_axes("amin", axis), bool(keepdims))(x)


_place = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.
    axis : int, optional
        The axis to look along.  Not given: the place in all of `x`, row by row.
    keepdims : bool
        Keep the reduced axes with size 1.

    Returns
    -------
    Tensor
        int64, without a gradient.  Of equals the first; the first NaN comes before any number.

    Raises
    ------
    ShapeError
        There is no such axis, or no element to choose.
    DtypeError
        `axis` is no integer, or `x` is float16.
    """
)


@_place
def argmax(x: Operand, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element stands, along one axis or in all of x.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = [[1.0, 5.0], [3.0, 2.0]]
    >>> tg.argmax(x, axis=1).value, tg.argmax(x).item()
    (array([1, 0]), 1)
    """
    return Argmax(None if axis is None else as_axis("argmax", axis), bool(keepdims))(x)


@_place
def argmin(x: Operand, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands, along one axis or in all of x.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = [[1.0, 5.0], [3.0, 2.0]]
    >>> tg.argmin(x, axis=1).value, tg.argmin(x).item()
    (array([0, 1]), 0)
    """
    return Argmin(None if axis is None else as_axis("argmin", axis), bool(keepdims))(x)


def _values_and_indices(
    name: str, op: type[Argmax], x: Operand, axis: Any, keepdims: bool
) -> ValuesAndIndices:
    """The elements at the places that an op finds along one axis, and these places."""
    if isinstance(axis, Sequence):
        way_out = f"tg.a{name} takes several axes, tg.{name}imum two operands of any kind"
        raise ArgumentError(name, "axis", "one axis, or a tensor", repr(axis), way_out)
    node = as_tensor(x)
    (place,) = normalize_axes(name, as_axis(name, axis), node.ndim)
    places = op(place, keepdims=True)(node)
    both = Gather(place)(node, places), places
    return ValuesAndIndices(*[y if keepdims else Squeeze(place)(y) for y in both])


_along_one = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.
    axis : int or Tensor, optional
        The axis to look along; or the other operand.
    keepdims : bool
        Keep the reduced axes with size 1, so that the results broadcast against `x`.

    Returns
    -------
    Tensor or named tuple
        Without an axis, and of two operands, one Tensor.  Along an axis `(values, indices)`: the
        elements, and their places along it, which are int64 and have no gradient.  Of equal
        elements along an axis the first has it, of all of `x` they share it evenly.

    Raises
    ------
    ShapeError
        There is no such axis, there is no element to choose, or two operands do not broadcast.
    DtypeError
        `axis` is no integer, or `x` is float16.
    ArgumentError
        `axis` is a list or tuple.
    """
)


@overload
def max(x: Operand, axis: None = None, keepdims: bool = False) -> Tensor: ...
@overload
def max(x: Operand, axis: int, keepdims: bool = False) -> ValuesAndIndices: ...
@overload
def max(x: Operand, axis: Tensor | Array) -> Tensor: ...
@_along_one
def max(
    x: Operand, axis: int | Tensor | Array | None = None, keepdims: bool = False
) -> Tensor | ValuesAndIndices:
    """The largest of all elements, or along one axis with its place, or of two operands.

    Examples
    --------
    >>> import tinygraph as tg
    >>> values, indices = tg.max([[1.0, 5.0], [3.0, 2.0]], 1)
    >>> values.value, indices.value, tg.max([1.0, 5.0]).item()
    (array([5., 3.], dtype=float32), array([1, 0]), 5.0)
    """
    if isinstance(axis, (Tensor, np.ndarray)):
        return maximum(x, axis)
    if axis is None:
        return Max(None, bool(keepdims))(x)
    return _values_and_indices("max", Argmax, x, axis, keepdims)


@overload
def min(x: Operand, axis: None = None, keepdims: bool = False) -> Tensor: ...
@overload
def min(x: Operand, axis: int, keepdims: bool = False) -> ValuesAndIndices: ...
@overload
def min(x: Operand, axis: Tensor | Array) -> Tensor: ...
@_along_one
def min(
    x: Operand, axis: int | Tensor | Array | None = None, keepdims: bool = False
) -> Tensor | ValuesAndIndices:
    """The smallest of all elements, or along one axis with its place, or of two operands.

    Examples
    --------
    >>> import tinygraph as tg
    >>> values, indices = tg.min([[1.0, 5.0], [3.0, 2.0]], 1)
    >>> values.value, indices.value, tg.min([1.0, 5.0]).item()
    (array([1., 2.], dtype=float32), array([0, 1]), 1.0)
    """
    if isinstance(axis, (Tensor, np.ndarray)):
        return minimum(x, axis)
    if axis is None:
        return Min(None, bool(keepdims))(x)
    return _values_and_indices("min", Argmin, x, axis, keepdims)
