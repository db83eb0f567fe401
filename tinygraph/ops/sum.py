"""Sum over axes.

    R     the elements that meet in one element of the output: all combinations of the reduced axes

    y[k]     = sum over r in R of x[k, r]
    gx[k, r] = gy[k]                        each term has derivative 1, so gx repeats gy: a view

keepdims leaves the reduced axes, with size 1.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.errors import DtypeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.axes import Sets, arranged, restored, sets_of
from tinygraph.shapes import Array, Axis, Shape, Spec, normalize_axes, reduced_shape, require_float
from tinygraph.tensor import Operand, Tensor

Axes = int | tuple[int, ...] | None  # the hyper-parameter: hashable, negative axes as they came


def as_axes(op: str, axis: Axis) -> Axes:
    """The argument `axis` as a hyper-parameter; whether there are such axes, `infer` will see."""
    if axis is None or isinstance(axis, int):
        return axis
    try:
        if isinstance(axis, Sequence):
            return tuple([operator.index(a) for a in axis])
        return operator.index(axis)
    except TypeError:
        raise DtypeError(op, "axis", "an int, a tuple of ints or None", repr(axis)) from None


def as_axis(op: str, axis: int) -> int:
    """The argument `axis` of an op along exactly one axis."""
    try:
        return operator.index(axis)
    except TypeError:
        raise DtypeError(op, "axis", "an int", repr(axis)) from None


@lru_cache(maxsize=1024)
def reduction(op: str, axis: Axes, keepdims: bool, shape: Shape) -> tuple[tuple[int, ...], Shape]:
    """The reduced axes, and the shape of the output."""
    axes = normalize_axes(op, axis, len(shape))
    return axes, reduced_shape(shape, axes, keepdims)


def spread(g: Array, shape: Shape, axes: tuple[int, ...]) -> Array:
    """A reduced array repeated over the axes that were reduced, as a view of stride 0."""
    return np.broadcast_to(g.reshape(reduced_shape(shape, axes, keepdims=True)), shape)


def sum_dtype(op: str, x: Spec) -> np.dtype[Any]:
    """The dtype of sums: integers are added in 64 bits as in numpy, for small ones overflow."""
    if x.dtype.kind == "f":
        require_float(op, x=x)
    elif x.dtype.itemsize < 8:
        return np.dtype(np.uint64 if x.dtype.kind == "u" else np.int64)
    return x.dtype


def as_summed(mem: Memory, x: Array) -> Array:
    """x as the kernels add it: floats as they are, integers and bools as int64.

    Numbers of uint64 keep their bits: two's complement adds both alike.
    """
    if x.dtype.kind == "f" or x.dtype == np.int64:
        return x
    if x.dtype == np.uint64:
        return x.view(np.int64)
    wide = mem.empty(x.shape, np.int64)
    wide[...] = x
    return wide


def sum_sets(mem: Memory, x: Array, sets: Sets, y: Array) -> None:
    """Launch the kernels that write the sum of each set of x to y, stage by stage."""
    kernel = op_kernel("sum", "sum_forward", x.dtype)
    while sets.slices > 1:
        partial = mem.empty((sets.outputs, sets.slices), x.dtype)
        sets.launch(kernel, x, partial)
        x, sets = partial, sets.parts()
    sets.launch(kernel, x, y.view(x.dtype))


@frozen
class Sum(Op):
    axis: Axes = None
    keepdims: bool = False

    def infer(self, x: Spec) -> Spec:
        shape = reduction(self.name, self.axis, self.keepdims, x.shape)[1]
        return Spec(shape, sum_dtype(self.name, x))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = reduction(self.name, self.axis, self.keepdims, x.shape)
        y = mem.empty(shape, sum_dtype(self.name, Spec(x.shape, x.dtype)))
        np.add.reduce(x, axis=axes, dtype=y.dtype, out=y, keepdims=self.keepdims)
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]) -> Gradients:
        axes, _ = reduction(self.name, self.axis, self.keepdims, shape)
        return (spread(gy, shape, axes),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = reduction(self.name, self.axis, self.keepdims, x.shape)
        y = mem.empty(shape, sum_dtype(self.name, Spec(x.shape, x.dtype)))
        sum_sets(mem, arranged(mem, as_summed(mem, x), axes), sets_of(x.shape, axes), y)
        return y, x.shape

    def backward_kernel(
        self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]
    ) -> Gradients:
        axes, _ = reduction(self.name, self.axis, self.keepdims, shape)
        gx = mem.empty(shape, gy.dtype)
        kernel = op_kernel("sum", "sum_backward", gy.dtype)
        sets_of(shape, axes).launch_on_elements(kernel, gy, gx)
        return (restored(gx, shape, axes),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        # With keepdims the outputs of tiles have size 1 on axis 0, and add up all the same.
        axes, _ = reduction(self.name, self.axis, self.keepdims, specs[0].shape)
        return "sum" if 0 in axes else "map"


def sum(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.
    axis : int or tuple of int, optional
        The axes to sum over; all where it is not given.
    keepdims : bool
        Keep the reduced axes with size 1, so that the result broadcasts against `x`.

    Returns
    -------
    Tensor
        Of the dtype of `x`, but 64 bits wide for integers, as in numpy.  The sum of nothing is 0.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sum([[1.0, 2.0], [3.0, 4.0]], axis=0).value
    array([4., 6.], dtype=float32)
    """
    return Sum(as_axes("sum", axis), bool(keepdims))(x)
