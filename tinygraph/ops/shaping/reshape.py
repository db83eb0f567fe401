"""Reshape and its kin: the same elements in the same order, in another shape.

    y.shape = the new shape, and y.ravel()[i] = x.ravel()[i]        row by row
    gx      = gy in the shape of x

    flatten      joins neighbouring axes into one          unflatten    makes several of one
    squeeze      drops axes of size 1                      unsqueeze    puts some in

All are views wherever the memory layout of x allows one; squeeze and unsqueeze always.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tinygraph.base import DtypeError, ShapeError, frozen
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor, as_tensor
from tinygraph.engine.spec import Array, Axes, Axis, Shape, Spec, integer, integers, normalize_axes
from tinygraph.ops.common import as_axes, as_axis, documented


class _Regrouping:
    """Mixed into ops whose new shape follows from that of x by a rule, written in `_shape`."""

    name: ClassVar[str]

    @abstractmethod
    def _shape(self, shape: Shape) -> Shape:
        """The shape of the output for an input of `shape`."""

    def infer(self, x: Spec) -> Spec:
        return Spec(self._shape(x.shape), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return x.reshape(self._shape(x.shape)), x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        return (gy.reshape(shape),)

    forward_kernel, backward_kernel = forward, backward  # nothing moves, so there is no kernel


@frozen
class Reshape(_Regrouping, Op):
    shape: Shape  # as it was given, with its -1, so that it need not contain the batch size

    def _shape(self, shape: Shape) -> Shape:
        size, known = math.prod(shape), math.prod([n for n in self.shape if n != -1])
        if -1 not in self.shape:
            if known == size:
                return self.shape
        elif known and size % known == 0:
            return tuple([size // known if n == -1 else n for n in self.shape])
        elif not known and not size:
            expected = "no -1 beside a size of 0, where it could be anything"
            way_out = "write the size instead of -1"
            raise ShapeError(self.name, "shape", expected, self.shape, way_out)
        wanted = f"a multiple of {known}" if -1 in self.shape else f"{known}"
        expected = f"one with {size} elements, as x of shape {shape} has"
        way_out = "leave one size to be found: -1"
        got = f"{self.shape}, which needs {wanted}"
        raise ShapeError(self.name, "shape", expected, got, way_out)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return x.reshape(self.shape), x.shape  # numpy finds the size of -1 sooner

    forward_kernel = forward

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        # Where -1 stands in front, rows are cut into several, or several are joined.
        before, after = math.prod(specs[0].shape[1:]), math.prod(self.shape[1:])
        regroups = min(before, after) > 0 == max(before, after) % min(before, after)
        return "map" if self.shape[:1] == (-1,) and regroups else None


@frozen
class Flatten(_Regrouping, Op):
    start_dim: int = 0
    end_dim: int = -1

    def _span(self, ndim: int) -> tuple[int, int]:
        """The first and the last of the joined axes, counted from the front."""
        n = ndim or 1  # a 0-d input becomes one axis of size 1
        for argument, axis in (("start_dim", self.start_dim), ("end_dim", self.end_dim)):
            if not -n <= axis < n:
                allowed = f"an axis from {-n} to {n - 1}"
                raise ShapeError(self.name, argument, allowed, axis, f"x has {ndim} axes")
        first, last = self.start_dim % n, self.end_dim % n
        if first > last:
            allowed = f"no axis before start_dim {self.start_dim}"
            got = f"{self.end_dim} with {ndim} axes"
            raise ShapeError(self.name, "end_dim", allowed, got, "exchange the two")
        return first, last

    def _shape(self, shape: Shape) -> Shape:
        first, last = self._span(len(shape))
        return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"  # axis 0 stays, or has several rows for each sample


@frozen
class Unflatten(_Regrouping, Op):
    axis: int
    sizes: Shape  # as they were given, with their -1

    def _shape(self, shape: Shape) -> Shape:
        (axis,) = normalize_axes(self.name, self.axis, len(shape))
        size, known = shape[axis], math.prod([n for n in self.sizes if n != -1])
        left = size // known if known else 0
        found = tuple([left if n == -1 else n for n in self.sizes])
        if math.prod(found) != size or not found:
            expected = f"sizes whose product is {size}, the size of axis {axis}"
            way_out = "leave one size to be found: -1"
            raise ShapeError(self.name, "sizes", expected, self.sizes, way_out)
        return (*shape[:axis], *found, *shape[axis + 1 :])

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.axis % specs[0].ndim else None


@frozen
class Squeeze(_Regrouping, Op):
    axis: Axes = None

    def _shape(self, shape: Shape) -> Shape:
        if self.axis is None:
            return tuple([n for n in shape if n != 1])
        axes = normalize_axes(self.name, self.axis, len(shape))
        return tuple([n for a, n in enumerate(shape) if n != 1 or a not in axes])

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if self.axis is None:
            return None  # a tile of one sample would lose its batch axis
        return None if 0 in normalize_axes(self.name, self.axis, specs[0].ndim) else "map"


@frozen
class Unsqueeze(_Regrouping, Op):
    axis: int | tuple[int, ...]

    def _axes(self, ndim: int) -> tuple[int, ...]:
        """Where the new axes come to lie in y."""
        new = len(self.axis) if isinstance(self.axis, tuple) else 1
        return normalize_axes(self.name, self.axis, ndim + new)

    def _shape(self, shape: Shape) -> Shape:
        axes, left = self._axes(len(shape)), iter(shape)
        return tuple([1 if a in axes else next(left) for a in range(len(shape) + len(axes))])

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return None if 0 in self._axes(specs[0].ndim) else "map"


def as_sizes(op: str, argument: str, sizes: Any) -> Shape:
    """An int or several as a tuple of ints of -1 or more."""
    whole = integers(op, argument, sizes)
    if any(n < -1 for n in whole):
        raise ShapeError(op, argument, "sizes of 0 or more, or -1", whole)
    return whole


def as_shape(op: str, shape: Any) -> Shape:
    """An int or several as a shape; at most one of them may be -1."""
    sizes = as_sizes(op, "shape", shape)
    if sizes.count(-1) > 1:
        raise ShapeError(op, "shape", "sizes of 0 or more, and at most one -1", sizes)
    return sizes


rearranged = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape and dtype.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view where memory allows.
    """
)


@rearranged
def reshape(x: Operand, shape: int | Shape) -> Tensor:
    """The same elements, row by row, in another shape.

    Parameters
    ----------
    shape : int or tuple of int
        The new sizes; at most one is -1 and follows from the others.  Where axis 0 keeps its size,
        it may have another one when the graph is run again, like a batch.

    Raises
    ------
    ShapeError
        `x` and `shape` have not the same number of elements, or the -1 is ambiguous.
    ArgumentError
        A size that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.reshape([1.0, 2.0, 3.0, 4.0], (2, -1)).value
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x, sizes = as_tensor(x), as_shape("reshape", shape)
    return Reshape(_named_by_samples(sizes, x.shape))(x)


def _named_by_samples(sizes: Shape, shape: Shape) -> Shape:
    """The same shape with -1 for axis 0, where that are the samples or rows of them, of any number.

    >>> _named_by_samples((8, 6, -1), (8, 2, 15)), _named_by_samples((16, 15), (8, 2, 15))
    ((-1, 6, 5), (-1, 15))
    """
    if not shape or not sizes or sizes[0] < 1 or shape[0] < 1:
        return sizes
    known, size = math.prod([n for n in sizes if n != -1]), math.prod(shape)
    rows = -1 not in sizes and 0 in (sizes[0] % shape[0], shape[0] % sizes[0])
    fits = known and (size % known == 0 if -1 in sizes else size == known)
    if not fits or not (rows or sizes[0] == shape[0]):
        return sizes
    return (-1, *[size // known if n == -1 else n for n in sizes[1:]])


@rearranged
def flatten(x: Operand, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Several neighbouring axes joined into one.

    Parameters
    ----------
    x : Tensor
        ... A 0-d tensor becomes one axis of size 1.
    start_dim, end_dim : int
        The first and the last of the axes to join, both included.  `start_dim=1` keeps the batch.

    Raises
    ------
    ShapeError
        There is no such axis, or `end_dim` lies before `start_dim`.
    ArgumentError
        An axis that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.flatten(tg.zeros(2, 3, 4), start_dim=1).shape
    (2, 12)
    """
    return Flatten(
        integer("flatten", "start_dim", start_dim), integer("flatten", "end_dim", end_dim)
    )(x)


@rearranged
def unflatten(x: Operand, axis: int, sizes: Shape) -> Tensor:
    """One axis cut into several: the inverse of flatten.

    Parameters
    ----------
    axis : int
        The axis to cut.
    sizes : tuple of int
        The sizes in its place; at most one is -1 and follows from the others.

    Raises
    ------
    ShapeError
        There is no such axis, or its size is not the product of `sizes`.
    DtypeError
        `axis` is no integer.
    ArgumentError
        A size that is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.unflatten(tg.zeros(2, 12), 1, (3, -1)).shape
    (2, 3, 4)
    """
    places = as_sizes("unflatten", "sizes", sizes)
    if places.count(-1) > 1:
        raise ShapeError("unflatten", "sizes", "at most one -1", places)
    return Unflatten(as_axis("unflatten", axis), places)(x)


@rearranged
def squeeze(x: Operand, axis: Axis = None) -> Tensor:
    """The same elements without axes of size 1.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes to drop where their size is 1; others stay, as in PyTorch.  Not given: every axis
        of size 1, a batch of one sample too; name the axes where the graph is to run with any batch
        size.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `axis` is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.squeeze(tg.zeros(4, 1, 1), axis=(1, 2)).shape
    (4,)
    """
    return Squeeze(as_axes("squeeze", axis))(x)


@rearranged
def unsqueeze(x: Operand, axis: int | Sequence[int]) -> Tensor:
    """The same elements with new axes of size 1: numpy's `expand_dims`.

    Parameters
    ----------
    axis : int or tuple of int
        Where the new axes come to lie in the result.

    Raises
    ------
    ShapeError
        There is no such place for an axis, or one is named twice.
    DtypeError
        `axis` is no integer.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.unsqueeze(tg.zeros(3), 1).shape, tg.unsqueeze(tg.zeros(3), (0, -1)).shape
    ((3, 1), (1, 3, 1))
    """
    places = as_axes("unsqueeze", axis)
    if places is None:
        raise DtypeError("unsqueeze", "axis", "an int or a tuple of ints", None)
    return Unsqueeze(places)(x)
