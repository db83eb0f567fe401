"""Mean over axes.

    M     how many elements meet in one element of the output: the product of the reduced sizes

    y[k]     = sum over r of x[k, r] / M
    gx[k, r] = gy[k] / M

keepdims leaves the reduced axes, with size 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Axis, Gradients, Memory, Needs, Operand, Shape, Tensor
from tinygraph.ops.common import arranged, as_axes, floats, given_in, sets_of, total, with_dtype
from tinygraph.ops.reductions.reductions import Reduction, count, reduction, spread
from tinygraph.ops.reductions.sum import Sum


@frozen
class Mean(Sum):
    infer = Reduction.infer  # floats alone

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, x.dtype)
        total(x, axes, y)
        y /= x.dtype.type(count(x.shape, axes))  # of nothing: 0 / 0 is NaN
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        axes, _ = self.over(shape)
        share = mem.empty(gy.shape, gy.dtype)
        np.divide(gy, gy.dtype.type(count(shape, axes)), out=share)
        return (spread(share, shape, axes),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y, source, sets = mem.empty(shape, x.dtype), arranged(mem, x, axes), sets_of(x.shape, axes)
        terms = sets.terms
        kernel = op_kernel("mean", "mean_forward", x.dtype)
        while sets.slices > 1:
            sums = mem.empty((sets.outputs, sets.slices), x.dtype)
            sets.launch(kernel, source, sums, 1)
            source, sets = sums, sets.parts()
        sets.launch(kernel, source, y, terms)
        return y, (x.shape,)

    def numbers(self, shape: Shape, axes: tuple[int, ...]) -> tuple[float, ...]:
        return (count(shape, axes),)

    def divisor(self, x: Any) -> float:
        return float(x.shape[0])  # of a claimed sum: samples, each with as many terms


@reduction
@with_dtype
def mean(x: Operand, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; integers and bools are made float32.

    Returns
    -------
    Tensor
        ... The mean of no element is NaN, without a warning.

    Raises
    ------
    DtypeError
        `axis` is no integer, `x` is float16, or `dtype` no float.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.mean([[1.0, 2.0], [3.0, 4.0]], axis=1, keepdims=True).value
    array([[1.5],
           [3.5]], dtype=float32)
    """
    return Mean(as_axes("mean", axis), bool(keepdims))(floats(given_in("mean", x, dtype, "f")))
