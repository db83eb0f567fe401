"""Maximum and minimum over axes.

    R     the elements that meet in one element of the output, row by row over the reduced axes

    max      y[k] = max over r in R of x[k, r]          r* = the first maximum of each R
    min      y[k] = min over r in R of x[k, r]          r* = the first minimum of each R

    gx[k, r] = gy[k] where r = r*, else 0

A NaN counts as larger, or smaller, than everything, so that it shows.  Forward stores r*, as its
number within R; backward only reads it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.cuda import InOut, op_kernel
from tinygraph.errors import ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.shared.axes import (
    arranged,
    as_int64,
    kept_then_reduced,
    moved_back,
    restored,
    sets_of,
)
from tinygraph.ops.shared.launch import for_each
from tinygraph.ops.shared.reductions import Reduction, count, reduction
from tinygraph.shapes import Array, Axis, Spec, as_axes, require_float
from tinygraph.tensor import Operand, Tensor


@frozen
class Max(Reduction, Op):
    extreme: ClassVar[Any] = np.maximum
    first_extreme: ClassVar[Any] = staticmethod(np.argmax)  # or the first NaN
    kernel_order: ClassVar[str] = "Larger"  # in max.cu

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        axes, shape = self.over(x.shape)
        if 0 in x.shape and not all(x.shape[a] for a in axes):
            expected = f"at least one element along axis {self.axis}"
            way_out = "give x an element there, for example with tg.pad"
            raise ShapeError(self.name, "x", expected, x.shape, way_out)
        return Spec(shape, x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, x.dtype)
        self.extreme.reduce(x, axis=axes, out=y, keepdims=self.keepdims)
        if not mem.needs[0]:
            return y, None
        where = mem.empty((y.size,), np.intp)
        sets = x.transpose(kept_then_reduced(x.ndim, axes))
        sets = sets.reshape(y.size, count(x.shape, axes))  # (K, R)
        self.first_extreme(sets, axis=1, out=where)
        return y, (where, x.shape)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        where, shape = saved
        axes, _ = self.over(shape)
        order = kept_then_reduced(len(shape), axes)
        sets = mem.zeros((where.size, count(shape, axes)), gy.dtype)  # (K, R)
        sets[np.arange(where.size), where] = gy.reshape(-1)
        return (moved_back(sets, shape, order),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        sets, wanted = sets_of(x.shape, axes), mem.needs[0]
        compared = x if x.dtype.kind == "f" or x.dtype == np.uint64 else as_int64(mem, x)
        source = arranged(mem, compared, axes)
        places = mem.empty((0,), np.int64)  # of the elements: in the first stage, where they stand
        kernel = op_kernel("max", "extreme_forward", source.dtype, self.kernel_order)
        while sets.slices > 1:
            leaders = mem.empty((sets.outputs, sets.slices), source.dtype)
            their_places = mem.empty(leaders.shape, np.int64)
            sets.launch(kernel, source, places, leaders, their_places)
            source, places, sets = leaders, their_places, sets.parts()
        y = mem.empty(shape, source.dtype)
        where = mem.empty((y.size if wanted else 0,), np.int64)
        sets.launch(kernel, source, places, y, where)
        if y.dtype != x.dtype:
            y, wide = mem.empty(shape, x.dtype), y
            y[...] = wide
        return y, (where, x.shape) if wanted else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        where, shape = saved
        axes, _ = self.over(shape)
        gx = mem.zeros(shape, gy.dtype)
        kernel = op_kernel("max", "extreme_backward", gy.dtype)
        extents = sets_of(shape, axes)[:5]
        for_each(kernel, where.size, gy, where, InOut(gx), *extents)
        return (restored(gx, shape, axes),)


@frozen
class Min(Max):
    extreme: ClassVar[Any] = np.minimum
    first_extreme: ClassVar[Any] = staticmethod(np.argmin)
    kernel_order: ClassVar[str] = "Smaller"


@reduction
def max(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.

    Returns
    -------
    Tensor
        ... A NaN shows.  Of several maxima the first one, row by row over the reduced axes,
        gets the gradient.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or there is nothing to take a maximum of.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.max([[1.0, 5.0], [3.0, 2.0]], axis=1).value
    array([5., 3.], dtype=float32)
    """
    return Max(as_axes("max", axis), bool(keepdims))(x)


@reduction
def min(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.

    Returns
    -------
    Tensor
        ... A NaN shows.  Of several minima the first one, row by row over the reduced axes,
        gets the gradient.

    Raises
    ------
    ShapeError
        There is no such axis, one is named twice, or there is nothing to take a minimum of.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.min([[1.0, 5.0], [3.0, 2.0]], axis=1).value
    array([1., 2.], dtype=float32)
    """
    return Min(as_axes("min", axis), bool(keepdims))(x)
