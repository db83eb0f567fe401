"""Transpose, permute, movedim: the axes in another order.

    y[i_p(0), i_p(1), ...]  = x[i_0, i_1, ...]        p = axes, a permutation
    gx = gy with the axes in the order of the inverse permutation

In numpy both are views.  Kernels read contiguous arrays, so there they are copies, but where only
axes of one element move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinygraph.base import DtypeError, ShapeError, frozen
from tinygraph.cuda import blocks
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor, as_tensor
from tinygraph.engine.spec import Array, Shape, Spec, axes_in_order, integers
from tinygraph.ops.common import MOST_BLOCKS, THREADS, as_axis
from tinygraph.ops.common.broadcast import MOST_AXES
from tinygraph.ops.common.strided import (
    Axis,
    Strided,
    axis_arguments,
    merged,
    read,
    steps_of,
    word_kernel,
    words,
)
from tinygraph.ops.shaping.reshape import rearranged

TILE = 32  # the same number stands in transpose.cu
FEWEST = 8  # rows and columns for which a tile pays


@frozen
class Transpose(Op):
    axes: tuple[int, ...] | None = None

    def _order(self, ndim: int) -> Shape:
        """Which axis of x comes to lie at each axis of y."""
        if self.axes is None:
            return tuple(range(ndim - 1, -1, -1))
        order = tuple([a + ndim if a < 0 else a for a in self.axes])
        if sorted(order) != list(range(ndim)):
            expected = f"each of the {ndim} axes of x exactly once"
            way_out = f"pass a permutation of {tuple(range(ndim))}, or None to reverse the axes"
            got = f"{self.axes} for x of rank {ndim}"
            raise ShapeError(self.name, "axes", expected, got, way_out)
        return order

    def infer(self, x: Spec) -> Spec:
        return Spec(tuple([x.shape[a] for a in self._order(x.ndim)]), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        order = self._order(x.ndim)
        return x.transpose(order), order

    def backward(self, mem: Memory, gy: Array, order: Shape, needs: Needs) -> Gradients:
        return (gy.transpose(_inverse(order)),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        order = self._order(x.ndim)
        return _permuted(mem, x, order), order

    def backward_kernel(self, mem: Memory, gy: Array, order: Shape, needs: Needs) -> Gradients:
        return (_permuted(mem, gy, _inverse(order)),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self._order(specs[0].ndim)[:1] == (0,) else None


def _inverse(order: Shape) -> Shape:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _tiles(axes: tuple[Axis, ...]) -> tuple[int, ...] | None:
    """A permutation as a stack of matrix transposes: their tiles, and what else the kernel takes.

    The rows are the innermost axis of y, the columns that of x, which has step 1; the others are
    the stack.  None where the innermost axis stays, or where tiles would be almost empty.
    """
    if len(axes) > MOST_AXES + 2 or axes[-1].step == 1:
        return None
    place = next(i for i, axis in enumerate(axes) if axis.step == 1)
    rows, columns = axes[-1], axes[place].size
    if min(rows.size, columns) < FEWEST:
        return None
    y_steps = steps_of(tuple([axis.size for axis in axes]))
    others = [i for i in range(len(axes) - 1) if i != place]
    stack = tuple([axes[i] for i in others])
    tiles = math.prod(axis.size for axis in stack) * blocks(rows.size, TILE) * blocks(columns, TILE)
    steps = *[y_steps[i] for i in reversed(others)], *[0] * (MOST_AXES - len(others))
    matrix = rows.size, columns, rows.step, y_steps[place]
    return (tiles, *matrix, *axis_arguments(stack), *steps)


def _permuted(mem: Memory, x: Array, order: Shape) -> Array:
    """A contiguous x with its axes in that order, contiguous; a view where nothing moves."""
    steps, shape = steps_of(x.shape), tuple([x.shape[a] for a in order])
    axes = merged(Axis(x.shape[a], steps[a]) for a in order)
    numbers = _tiles(axes) if x.size and len(axes) > 1 else None
    if numbers is None:
        return read(mem, x, Strided(0, axes), shape)
    y = mem.empty(shape, x.dtype)
    kernel = word_kernel("transpose", "transpose_tile", x.dtype)
    kernel(min(numbers[0], MOST_BLOCKS), THREADS, words(x), words(y), *numbers)
    return y


def _permutation(x: Operand, op: str, argument: str, axes: Any) -> Tensor:
    return Transpose(integers(op, argument, axes, "a tuple of ints", DtypeError))(x)


@rearranged
def transpose(
    x: Operand,
    dim0: int | Sequence[int] | None = None,
    dim1: int | None = None,
    *others: int,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """Two axes swapped, as in PyTorch; or all axes in another order, as in numpy.

    Parameters
    ----------
    dim0, dim1 : int
        The axes to swap.  Without `dim1`: `dim0` is a permutation as for `tg.permute`, or is not
        given either, and the axes are reversed.
    others : int
        More axes: all together are a permutation.  Two are swapped, also where `x` has two axes.
    axes : tuple of int, optional
        The permutation under numpy's name.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view on the cpu.

    Raises
    ------
    ShapeError
        There is no such axis, or a permutation does not name each axis once.
    DtypeError
        Axes that are no integers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.zeros(2, 3, 4)
    >>> tg.transpose(x, 1, 2).shape, tg.transpose(x, (2, 0, 1)).shape, tg.transpose(x).shape
    ((2, 4, 3), (4, 2, 3), (4, 3, 2))
    """
    if dim1 is None:
        order = axes if dim0 is None else dim0
        return Transpose()(x) if order is None else _permutation(x, "transpose", "axes", order)
    if others:
        return _permutation(x, "transpose", "axes", (dim0, dim1, *others))
    node = as_tensor(x)
    both: Any = (dim0, dim1)
    a, b = (axes_in_order("transpose", as_axis("transpose", d), node.ndim)[0] for d in both)
    swapped = list(range(node.ndim))
    swapped[a], swapped[b] = b, a
    return Transpose(tuple(swapped))(node)


@rearranged
def permute(x: Operand, dims: int | Sequence[int], *others: int) -> Tensor:
    """The axes in another order.

    Parameters
    ----------
    dims : tuple of int
        A permutation: axis i of the result is axis `dims[i]` of `x`.
    others : int
        The rest of the permutation where it is not a tuple.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view on the cpu.

    Raises
    ------
    ShapeError
        The permutation does not name each axis once.
    DtypeError
        Axes that are no integers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.permute(tg.zeros(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permutation(x, "permute", "dims", (dims, *others) if others else dims)


@rearranged
def movedim(x: Operand, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Some axes moved to other places; the rest keeps its order.

    Parameters
    ----------
    source : int or tuple of int
        Axes of `x`.
    destination : int or tuple of int
        Their places in the result, one for each.

    Returns
    -------
    Tensor
        Of the dtype of `x`; a view on the cpu.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or the numbers of axes and places differ.
    DtypeError
        Axes that are no integers.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.movedim(tg.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    node = as_tensor(x)
    axes, places = (axes_in_order("movedim", a, node.ndim) for a in (source, destination))
    if len(axes) != len(places):
        expected = f"as many places as axes, {len(axes)}"
        raise ShapeError("movedim", "destination", expected, destination)
    order = [a for a in range(node.ndim) if a not in axes]
    for place, axis in sorted(zip(places, axes, strict=True)):  # from the front on
        order.insert(place, axis)
    return Transpose(tuple(order))(node)
