"""Gather: along one axis, the elements that an integer tensor names.

    L     size of x along the axis; of its other sizes the indices may leave out the end
    i k   positions before and after the axis

    y[i, j, k]  = x[i, indices[i, j, k], k]
    gx[i, l, k] = sum of gy[i, j, k] over all j with indices[i, j, k] = l, in the order of j

Unlike in `x[indices]`, the indices are an input of the graph, and each position has its own: the
probability of each row's label, say, where x is (N, C) and the indices are (N, 1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.base import ShapeError, frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Operand, Shape, Spec, Tensor, as_tensor, normalize_axes
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import add_where, as_int64, device_of, for_each
from tinygraph.ops.common.arguments import as_axis, require_indices, require_range
from tinygraph.ops.common.scatter import sum_by_row
from tinygraph.ops.common.strided import as_word, word_kernel, words
from tinygraph.ops.shaping.getitem import getitem

SOUGHT = 32  # indices of a row: with more of them, backward sorts instead of looking at each


@frozen
class Gather(Op):
    axis: int

    def infer(self, x: Spec, indices: Spec) -> Spec:
        (axis,) = normalize_axes(self.name, self.axis, x.ndim)
        require_indices(self.name, indices, "x comes first, then the indices")
        others = [(*s[:axis], *s[axis + 1 :]) for s in (x.shape, indices.shape)]
        if indices.ndim != x.ndim or others[0] != others[1]:
            expected = f"at most the sizes of x, {x.shape}, on every axis but {self.axis}"
            way_out = "add axes with tg.unsqueeze, or repeat x with tg.expand"
            got = f"shape {indices.shape}"
            raise ShapeError(self.name, "indices", expected, got, way_out)
        return Spec(indices.shape, x.dtype)

    def check(self, x: Array, indices: Array) -> None:
        last = x.shape[self.axis] - 1
        expected = f"numbers from 0 to {last}, the positions along axis {self.axis} of x"
        if last < 0:
            expected = f"none, for x of shape {x.shape} has no element there"
        way_out = "negative numbers do not count from the end"
        require_range(self.name, "indices", indices, 0, last, expected, way_out)

    def forward(self, mem: Memory, x: Array, indices: Array) -> tuple[Array, Any]:
        at = _positions(mem, x.shape, indices, self.axis % x.ndim)
        y = mem.empty(indices.shape, x.dtype)
        if y.size:
            np.take(x.reshape(-1), at, out=y, mode="clip")  # "raise" would go through a buffer
        return y, (at, x.shape) if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        at, shape = saved
        gx = mem.zeros(shape, gy.dtype)
        add_where(mem, gx.reshape(-1, 1), at.reshape(-1), gy.reshape(-1, 1))
        return gx, None

    def forward_kernel(self, mem: Memory, x: Array, indices: Array) -> tuple[Array, Any]:
        wide = as_int64(mem, indices)
        y = mem.empty(indices.shape, x.dtype)
        missing = as_word(math.nan if x.dtype.kind == "f" else 0, x.dtype)
        kernel = word_kernel("gather", "gather_forward", x.dtype)
        sizes = self._sizes(x.shape, indices.shape)
        for_each(kernel, y.size, words(x), wide, words(y), y.size, *sizes, missing)
        return y, (wide, x.shape) if mem.needs[0] else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        indices, shape = saved
        size, count, behind = self._sizes(shape, gy.shape)
        if count <= SOUGHT:
            gx = mem.empty(shape, gy.dtype)
            kernel = op_kernel("gather", "gather_backward", gy.dtype)
            for_each(kernel, gx.size, gy, indices, gx, gx.size, size, count, behind)
            return gx, None
        positions = mem.empty(indices.shape, np.int64)
        kernel = op_kernel("gather", "gather_positions")
        for_each(kernel, gy.size, indices, positions, gy.size, size, count, behind)
        return sum_by_row(mem, positions, gy, math.prod(shape), 1).reshape(shape), None

    def _sizes(self, x: Shape, indices: Shape) -> tuple[int, int, int]:
        """Of x and of the indices along the axis, and of all axes behind it."""
        axis = self.axis % len(x)
        return x[axis], indices[axis], math.prod(x[axis + 1 :])

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        if self.axis % specs[0].ndim:
            return "map" if all(carries) else None
        return "map" if carries == (False, True) else None  # rows named from an x that stays whole


def _positions(mem: Memory, shape: Shape, indices: Array, axis: int) -> Array:
    """For each element of y, its row-major position in x."""
    after = math.prod(shape[axis + 1 :])  # the step of the axis
    at = mem.empty(indices.shape, np.intp)
    np.copyto(at, indices, casting="unsafe")  # `check` has seen that they fit
    at *= after
    parts = at.reshape(math.prod(shape[:axis]), indices.shape[axis], after)  # a view
    parts += np.arange(len(parts))[:, None, None] * (shape[axis] * after)
    parts += np.arange(after)
    return at


def _cut(x: Tensor, axis: int, shape: Shape) -> Tensor:
    """x without the ends that indices of this shape leave out on axes but `axis`; x, if none."""
    sizes = [*shape]
    sizes[axis] = x.shape[axis]
    smaller = any(n < size for n, size in zip(sizes, x.shape, strict=True))
    return getitem(x, tuple([slice(n) for n in sizes])) if smaller else x


def gather(x: Operand, axis: int, indices: Operand) -> Tensor:
    """Along one axis, the elements at the given positions, as numpy's `take_along_axis`.

    Parameters
    ----------
    x : Tensor
        At least one axis; any dtype.
    axis : int
        The axis to take elements along.
    indices : Tensor
        Integers from 0 to the size of `x` along `axis`, less 1; negative numbers are refused.  As
        many axes as `x`, and but along `axis` no larger sizes: nothing is broadcast, and where they
        are smaller, the end of `x` is left out.  They are an input of the graph, and no gradient
        goes to them.

    Returns
    -------
    Tensor
        Of the shape of `indices` and the dtype of `x`.  Where a position is named several times,
        its gradients add up.

    Raises
    ------
    DtypeError
        `indices` are not integers, or `axis` is none.
    ShapeError
        There is no such axis, or the indices are larger on another one.
    ArgumentError
        An index is negative or too large; the message names it and where it stands.

    Examples
    --------
    >>> import tinygraph as tg
    >>> probabilities = tg.Tensor([[0.9, 0.1], [0.2, 0.8]])
    >>> tg.gather(probabilities, 1, [[1], [1]]).value
    array([[0.1],
           [0.8]], dtype=float32)
    """
    op = Gather(as_axis("gather", axis))
    device = device_of(x, indices)
    x, indices = as_tensor(x, device=device), as_tensor(indices, device=device)
    if x.ndim == indices.ndim and -x.ndim <= op.axis < x.ndim:
        x = _cut(x, op.axis, indices.shape)
    return op(x, indices)
