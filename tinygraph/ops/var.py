"""Variance over axes.

    R     the elements that meet in one element of the output: all combinations of the reduced axes
    M     how many they are          c     the correction: 0 for the variance of these elements,
                                           1 for an unbiased estimate from a sample

    m[k]     = sum over r in R of x[k, r] / M
    d[k, r]  = x[k, r] - m[k]
    y[k]     = sum over r in R of d[k, r]**2 / (M - c)
    gx[k, r] = gy[k] * 2 * d[k, r] / (M - c)            the share of m vanishes: the d have sum 0

In two passes, first m, then d, so that nothing cancels where the mean is far from zero.  The
rounding of m itself is taken out by centring d once more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.checks import number
from tinygraph.cuda import op_kernel
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.shared.axes import arranged, sets_of
from tinygraph.ops.shared.normalization import centred
from tinygraph.ops.shared.reductions import Reduction, count, reduction, spread
from tinygraph.shapes import Array, Axis, Shape, as_axes
from tinygraph.tensor import Operand, Tensor


@frozen
class Var(Reduction, Op):
    correction: float = 0.0

    def _divisor(self, shape: Shape, axes: tuple[int, ...]) -> float:
        """M - c, but never negative: too few elements give NaN or infinity, as in numpy."""
        return max(count(shape, axes) - self.correction, 0.0)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        d, _, _ = centred(mem, x, axes)
        squares = np.square(d, out=mem.empty(x.shape, x.dtype) if mem.needs[0] else d)
        y = mem.empty(shape, x.dtype)
        np.add.reduce(squares, axis=axes, out=y, keepdims=self.keepdims)
        y /= x.dtype.type(self._divisor(x.shape, axes))
        return y, d if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, d: Array, needs: Needs) -> Gradients:
        axes, _ = self.over(d.shape)
        share = mem.empty(gy.shape, gy.dtype)
        np.divide(gy, d.dtype.type(self._divisor(d.shape, axes) / 2), out=share)
        gx = mem.empty(d.shape, d.dtype)
        return (np.multiply(d, spread(share, d.shape, axes), out=gx),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        sets, source = sets_of(x.shape, axes), arranged(mem, x, axes)
        divisor = self._divisor(x.shape, axes)
        kernel = op_kernel("var", "var_forward", x.dtype)
        null = mem.empty((0,), x.dtype)
        moments = null  # of the elements: there are none in the first stage
        while sets.slices > 1:
            parts = mem.empty((4, sets.outputs * sets.slices), x.dtype)
            sets.launch(kernel, source, moments, parts, null, null, divisor)
            moments, sets = parts, sets.parts()
        y = mem.empty(shape, x.dtype)
        centers = mem.empty((2, y.size) if mem.needs[0] else (0,), x.dtype)
        sets.launch(kernel, source, moments, null, y, centers, divisor)
        return y, (x.shape, source, centers) if mem.needs[0] else None

    def numbers(self, shape: Shape, axes: tuple[int, ...]) -> tuple[float, ...]:
        return (self._divisor(shape, axes) / 2,)


@reduction
def var(x: Operand, axis: Axis = None, keepdims: bool = False, correction: float = 0) -> Tensor:
    """The variance of the elements, over some axes or all.

    Parameters
    ----------
    correction : float
        What is subtracted from the number of elements in the divisor: numpy's `ddof`, and the
        default is numpy's, 0.  torch's default is 1, which makes the estimate unbiased.

    Returns
    -------
    Tensor
        ... Accurate also where the mean is far from zero.  Where there are not more elements
        than `correction`, NaN or infinity, without a warning.

    Raises
    ------
    ArgumentError
        `correction` is no finite number.

    References
    ----------
    Chan, Golub, LeVeque, "Algorithms for computing the sample variance: analysis and
    recommendations", The American Statistician 37, 1983.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0, 3.0])
    >>> round(tg.var(x).item(), 4), tg.var(x, correction=1).item()
    (0.6667, 1.0)
    """
    return Var(as_axes("var", axis), bool(keepdims), number("var", "correction", correction))(x)
