"""Cumulative sum along one axis.

    L     size of the axis

    y[i]  = x[0] + ... + x[i]
    gx[i] = gy[i] + ... + gy[L - 1]

x[i] is part of the sum at its place and of every later one, so its gradient is a sum from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.cast import astype, given_in, with_dtype
from tinygraph.ops.shared.axes import Sets, sets_of
from tinygraph.ops.sum import as_summed, sum_dtype
from tinygraph.shapes import Array, Shape, Spec, as_axis, normalize_axes, require_float
from tinygraph.tensor import Operand, Tensor


def _scan_sets(mem: Memory, x: Array, sets: Sets, y: Array, reverse: bool) -> None:
    """Launch the kernels that write the cumulative sums of each set of x to y."""
    if not y.size:
        return
    starts = mem.empty((0,), x.dtype)
    if sets.slices > 1:
        sums = mem.empty((sets.outputs, sets.slices), x.dtype)
        sets.launch(op_kernel("cumsum", "slice_sums", x.dtype), x, sums, int(reverse))
        starts = mem.empty(sums.shape, x.dtype)
        _scan_sets(mem, sums, sets.parts(), starts, reverse=False)
    sets.launch(op_kernel("cumsum", "cumulative_sums", x.dtype), x, starts, y, int(reverse))


@frozen
class Cumsum(Op):
    axis: int

    def infer(self, x: Spec) -> Spec:
        normalize_axes(self.name, self.axis, x.ndim)
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        return Spec(x.shape, sum_dtype(x.dtype))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, sum_dtype(x.dtype))
        np.add.accumulate(x, axis=self.axis, dtype=y.dtype, out=y)
        return y, None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        np.add.accumulate(
            np.flip(gy, self.axis), axis=self.axis, out=np.flip(gx, self.axis)
        )  # both views, so that the sums run from the end
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, sum_dtype(x.dtype))
        x = as_summed(mem, x)
        _scan_sets(mem, x, self._sets(x.shape), y.view(x.dtype), reverse=False)
        return y, None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        _scan_sets(mem, gy, self._sets(gy.shape), gx, reverse=True)
        return (gx,)

    def _sets(self, shape: Shape) -> Sets:
        return sets_of(shape, normalize_axes(self.name, self.axis, len(shape)))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.axis % specs[0].ndim else None


@with_dtype
def cumsum(x: Operand, axis: int, *, dtype: Any = None) -> Tensor:
    """At each place the sum of all elements up to it, along one axis.

    Parameters
    ----------
    x : Tensor
        At least one axis; float32, float64, integers or bools.
    axis : int
        The axis to sum along.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`, but int64 for bools and small integers, or as `dtype` says.
        On the cpu each sum is one addition to the one before it, so that rounding grows with the
        length of the axis; kernels add up long axes in pieces.

    Raises
    ------
    ShapeError
        There is no such axis.
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.cumsum([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], axis=1).value
    array([[ 1.,  3.,  6.],
           [ 4.,  9., 15.]], dtype=float32)
    """
    y = Cumsum(as_axis("cumsum", axis))(given_in("cumsum", x, dtype))
    return y if dtype is None else astype(y, dtype)
