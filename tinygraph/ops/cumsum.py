"""Cumulative sum along one axis.

    L     size of the axis

    y[i]  = x[0] + ... + x[i]
    gx[i] = gy[i] + ... + gy[L - 1]

x[i] is part of the sum at its place and of every later one, so its gradient is a sum from the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.sum import as_axis, sum_dtype
from tinygraph.shapes import Array, Spec, normalize_axes
from tinygraph.tensor import Operand, Tensor


@dataclass(frozen=True)
class Cumsum(Op):
    axis: int

    def infer(self, x: Spec) -> Spec:
        normalize_axes(self.name, self.axis, x.ndim)
        return Spec(x.shape, sum_dtype(self.name, x))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, sum_dtype(self.name, Spec(x.shape, x.dtype)))
        np.add.accumulate(x, axis=self.axis, dtype=y.dtype, out=y)
        return y, None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        gx = mem.empty(gy.shape, gy.dtype)
        np.add.accumulate(
            np.flip(gy, self.axis), axis=self.axis, out=np.flip(gx, self.axis)
        )  # both views, so that the sums run from the end
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.axis % specs[0].ndim else None


def cumsum(x: Operand, axis: int) -> Tensor:
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
        Of the shape and dtype of `x`, but 64 bits wide for integers, as in numpy.  Each sum is one
        addition to the one before it, so that rounding grows with the length of the axis.

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
    return Cumsum(as_axis("cumsum", axis))(x)
