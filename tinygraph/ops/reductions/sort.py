"""Sorting along one axis: the order of the elements, the sorted elements, the first few of them.

    L       size of the axis

    rank    r[i] = how many j with x[j] < x[i], or with x[j] = x[i] and j < i
    argsort order[r[i]] = i          the inverse permutation: element order[k] comes k-th
    sort    y[k]  = x[order[k]]      gx[order[k]] = gy[k]         a gather, and its way back
    topk    the first k of these, from the largest

Where the order descends, "<" becomes ">".  Equal elements keep their order, and NaN counts as
larger than every number, as in PyTorch.  The kernels count ranks: L * L comparisons for L elements,
so that any length is right and no two threads write one place.

Source: Knuth, "The art of computer programming", volume 3, section 5.2, comparison counting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, frozen, whole
from tinygraph.cuda import op_kernel
from tinygraph.engine import Memory, Op, Operand, Tensor, as_tensor
from tinygraph.engine.spec import Array, Spec, normalize_axes, require_float
from tinygraph.ops.common import as_axis, as_int64, documented, for_each
from tinygraph.ops.reductions.max import ValuesAndIndices
from tinygraph.ops.shaping.gather import Gather


@frozen
class Argsort(Op):
    axis: int
    descending: bool
    count: int | None = None  # of the first places; None for all

    def infer(self, x: Spec) -> Spec:
        (axis,) = normalize_axes(self.name, self.axis, x.ndim)
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        count = x.shape[axis] if self.count is None else self.count
        return Spec((*x.shape[:axis], count, *x.shape[axis + 1 :]), np.dtype(np.int64))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        lines = np.moveaxis(x, self.axis, -1)
        if self.descending:  # the last of equals first, counted from the end
            order = x.shape[self.axis] - 1 - np.argsort(lines[..., ::-1], kind="stable")[..., ::-1]
        else:
            order = np.argsort(lines, kind="stable")
        y = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, np.int64)
        np.moveaxis(y, self.axis, -1)[...] = order[..., : y.shape[self.axis]]
        return y, None

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        compared = x if x.dtype.kind == "f" or x.dtype == np.uint64 else as_int64(mem, x)
        y = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, np.int64)
        axis = self.axis % x.ndim
        sizes = x.shape[axis], y.shape[axis], math.prod(x.shape[axis + 1 :])
        kernel = op_kernel("sort", "argsort_forward", compared.dtype)
        if y.size:
            for_each(kernel, x.size, compared, y, x.size, *sizes, int(self.descending))
        return y, None

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries[0] and self.axis % specs[0].ndim else None


_sorted = documented(
    """
    Parameters
    ----------
    x : Tensor
        At least one axis; float32, float64, integers or bools.
    axis : int
        The axis to sort along.
    descending : bool
        From the largest to the smallest.
    stable : bool
        Taken as PyTorch has it: equal elements keep their order in any case.

    Raises
    ------
    ShapeError
        There is no such axis.
    DtypeError
        `axis` is no integer, or `x` is float16.
    """
)


def _in_order(
    name: str, x: Operand, axis: int, descending: bool, count: int | None = None
) -> ValuesAndIndices:
    """The elements in order, or the first of them, and their places."""
    node, axis = as_tensor(x), as_axis(name, axis)
    (place,) = normalize_axes(name, axis, node.ndim)
    if count is not None and count > node.shape[place]:
        expected = f"an int from 0 to {node.shape[place]}, the size of axis {axis}"
        raise ArgumentError(name, "k", expected, count)
    order = Argsort(axis, bool(descending), count)(node)
    return ValuesAndIndices(Gather(axis)(node, order), order)


@_sorted
def sort(
    x: Operand, axis: int = -1, descending: bool = False, stable: bool = False
) -> ValuesAndIndices:
    """The elements in order along one axis, and where each of them stood.

    Returns
    -------
    Named tuple of two Tensors
        `(values, indices)`, both of the shape of `x`; the indices are int64 and have no gradient.
        NaN counts as larger than every number.

    Examples
    --------
    >>> import tinygraph as tg
    >>> values, indices = tg.sort([3.0, 1.0, 2.0])
    >>> values.value, indices.value
    (array([1., 2., 3.], dtype=float32), array([1, 2, 0]))
    """
    return _in_order("sort", x, axis, descending)


@_sorted
def argsort(x: Operand, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Where the elements stand that come first, second, ... in order along one axis.

    Returns
    -------
    Tensor
        int64, of the shape of `x`, without a gradient.  NaN counts as larger than every number.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.argsort([3.0, 1.0, 2.0], descending=True).value
    array([0, 2, 1])
    """
    return Argsort(as_axis("argsort", axis), bool(descending))(x)


@_sorted
def topk(
    x: Operand, k: int, axis: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesAndIndices:
    """The k largest elements along one axis, from the largest, and where they stand.

    Parameters
    ----------
    k : int
        How many, from 0 to the size of the axis.
    largest : bool
        False for the k smallest, from the smallest.
    sorted : bool
        Taken as PyTorch has it: they are in order in any case.

    Returns
    -------
    Named tuple of two Tensors
        `(values, indices)`, of size k along the axis; the indices are int64 and have no gradient.
        NaN counts as larger than every number; of equal elements the first ones come first.

    Raises
    ------
    ArgumentError
        `k` is negative, or larger than the axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.topk([[3.0, 1.0, 2.0]], 2).values.value
    array([[3., 2.]], dtype=float32)
    """
    count = whole("topk", "k", k, 0)
    return _in_order("topk", x, axis, largest, count)
