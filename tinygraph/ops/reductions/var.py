"""Variance and standard deviation over axes.

    R     the elements that meet in one element of the output: all combinations of the reduced axes
    M     how many they are          c     the correction: 1 for an unbiased estimate from a sample,
                                           0 for the variance of these elements

    m[k]     = sum over r in R of x[k, r] / M
    d[k, r]  = x[k, r] - m[k]
    v[k]     = sum over r in R of d[k, r]**2 / (M - c)

    var      y = v           gx[k, r] = gy[k] * 2 * d[k, r] / (M - c)
    std      y = sqrt(v)     gx[k, r] = gy[k] / (M - c) * (d[k, r] / y[k])       0 where y is 0

The share of m in gx vanishes, for the d have sum 0.

In two passes, first m, then d, so that nothing cancels where the mean is far from zero.  The
rounding of m itself is taken out by centring d once more.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, frozen, number
from tinygraph.cuda import Kernel, op_kernel
from tinygraph.engine import Array, Axis, Gradients, Needs, Op, Operand, Shape, Tensor, as_tensor
from tinygraph.engine.memory import Memory
from tinygraph.ops.common import arranged, as_axes, documented, sets_of, total
from tinygraph.ops.normalization.normalization import centred
from tinygraph.ops.reductions.lengths import doubtful, make_again, scaled_length
from tinygraph.ops.reductions.mean import mean
from tinygraph.ops.reductions.reductions import Reduction, count, spread


@frozen
class Var(Reduction, Op):
    correction: float = 1.0

    def _divisor(self, shape: Shape, axes: tuple[int, ...]) -> float:
        """M - c, but never negative: too few elements give NaN or infinity, as in numpy."""
        return max(count(shape, axes) - self.correction, 0.0)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        d, _, _ = centred(mem, x, axes)
        squares = np.square(d, out=mem.empty(x.shape, x.dtype) if mem.needs[0] else d)
        y = mem.empty(shape, x.dtype)
        total(squares, axes, y)
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
        kernel = self.kernel("forward", x.dtype)
        null = mem.empty((0,), x.dtype)
        moments = null  # of the elements: there are none in the first stage
        while sets.slices > 1:
            parts = mem.empty((4, sets.outputs * sets.slices), x.dtype)
            sets.launch(kernel, source, moments, parts, null, null, divisor)
            moments, sets = parts, sets.parts()
        y = mem.empty(shape, x.dtype)
        centers = mem.empty((2, y.size) if mem.needs[0] else (0,), x.dtype)
        sets.launch(kernel, source, moments, null, y, centers, divisor)
        return y, (x.shape, y, source, centers) if mem.needs[0] else None

    def kernel(self, function: str, dtype: np.dtype[Any]) -> Kernel:
        return op_kernel("var", f"var_{function}", dtype, type(self).__name__)

    def numbers(self, shape: Shape, axes: tuple[int, ...]) -> tuple[float, ...]:
        return (self._divisor(shape, axes) / 2,)


@frozen
class Std(Var):
    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y, d = super().forward(mem, x)
        again = doubtful(y)
        np.sqrt(y, out=y)
        if again is not None:  # the squares of small and large distances are out of range
            axes, _ = self.over(x.shape)
            make_again(y, again, x, axes, partial(_deviation, self._divisor(x.shape, axes)))
        return y, (d, y) if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        d, y = saved
        axes, _ = self.over(d.shape)
        flat = np.equal(y, 0, out=mem.empty(y.shape, bool))
        share = np.divide(
            gy, d.dtype.type(self._divisor(d.shape, axes)), out=mem.empty(gy.shape, gy.dtype)
        )
        length = mem.empty(y.shape, y.dtype)
        length[...] = y
        for array, value in ((share, 0), (length, 1)):
            np.copyto(array, value, where=flat)
        gx = np.divide(d, spread(length, d.shape, axes), out=mem.empty(d.shape, d.dtype))
        gx *= spread(share, d.shape, axes)
        return (gx,)


def _deviation(divisor: float, sets: Array) -> Array:
    """The standard deviation of each row, which is overwritten."""
    least, most = sets.min(axis=1), sets.max(axis=1)
    flat = (least == most) & np.isfinite(most)
    for _ in range(2):
        sets -= np.add.reduce(sets, axis=1, keepdims=True) / sets.dtype.type(sets.shape[1])
    with np.errstate(all="ignore"):
        y = scaled_length(sets, 2.0) / sets.dtype.type(divisor**0.5)
    return np.where(flat & (divisor > 0), 0, y)


def _correction(
    op: str, correction: float | None, unbiased: bool | None, ddof: float | None
) -> float:
    """What is subtracted from the number of elements: 1, or what one of three arguments says."""
    given = {"correction": correction, "unbiased": unbiased, "ddof": ddof}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        expected = "one of correction, unbiased and ddof"
        raise ArgumentError(op, named[0], expected, " and ".join(named))
    if unbiased is not None:
        return 1.0 if unbiased else 0.0
    return number(op, named[0], given[named[0]]) if named else 1.0


_spread = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    axis : int or tuple of int, optional
        The axes to reduce; all where it is not given.
    unbiased : bool, optional
        The older name of a correction of 1 or 0.
    keepdims : bool
        Keep the reduced axes with size 1, so that the result broadcasts against `x`.
    correction : float, optional
        What is subtracted from the number of elements in the divisor.  Not given: 1, which makes an
        unbiased estimate of the variance from a sample.  0 for the variance of these elements.
    ddof : float, optional
        The correction under numpy's name.  There its default is 0.

    Returns
    -------
    Tensor
        Of the dtype of `x`.  Accurate also where the mean is far from zero.  Where there are not
        more elements than the correction, NaN or infinity, without a warning.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `x` is not of a float dtype, or `axis` is no integer.
    ArgumentError
        The correction is no finite number, or is given by two arguments.

    References
    ----------
    Chan, Golub, LeVeque, "Algorithms for computing the sample variance: analysis and
    recommendations", The American Statistician 37, 1983.
    """
)


@_spread
def var(
    x: Operand,
    axis: Axis = None,
    unbiased: bool | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    ddof: float | None = None,
) -> Tensor:
    """The variance of the elements, over some axes or all: unbiased unless told otherwise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0, 3.0])
    >>> tg.var(x).item(), round(tg.var(x, correction=0).item(), 4)
    (1.0, 0.6667)
    """
    less = _correction("var", correction, unbiased, ddof)
    return Var(as_axes("var", axis), bool(keepdims), less)(x)


@_spread
def std(
    x: Operand,
    axis: Axis = None,
    unbiased: bool | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    ddof: float | None = None,
) -> Tensor:
    """The standard deviation of the elements, over some axes or all: the root of `tg.var`.

    Returns
    -------
    Tensor
        ... The gradient is 0 where the standard deviation is.  On the cpu it is right also where
        the variance is out of the range of the dtype, as that of [1e-30, 2e-30] in float32.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.std([1.0, 2.0, 3.0]).item()
    1.0
    """
    less = _correction("std", correction, unbiased, ddof)
    return Std(as_axes("std", axis), bool(keepdims), less)(x)


_with_mean = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    axis : int or tuple of int, optional
        The axes to reduce; all where it is not given.
    unbiased, keepdims, correction, ddof
        As for `tg.var`.

    Returns
    -------
    tuple of Tensor
        Two, of the dtype of `x`.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `x` is not of a float dtype, or `axis` is no integer.
    ArgumentError
        The correction is no finite number, or is given by two arguments.
    """
)


@_with_mean
def var_mean(
    x: Operand,
    axis: Axis = None,
    unbiased: bool | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    ddof: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean of the elements, over some axes or all.

    Examples
    --------
    >>> import tinygraph as tg
    >>> [y.item() for y in tg.var_mean([1.0, 2.0, 3.0])]
    [1.0, 2.0]
    """
    node = as_tensor(x)
    y = var(node, axis, unbiased, keepdims, correction=correction, ddof=ddof)
    return y, mean(node, axis, keepdims)


@_with_mean
def std_mean(
    x: Operand,
    axis: Axis = None,
    unbiased: bool | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    ddof: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean of the elements, over some axes or all.

    Examples
    --------
    >>> import tinygraph as tg
    >>> [y.item() for y in tg.std_mean([1.0, 2.0, 3.0])]
    [1.0, 2.0]
    """
    node = as_tensor(x)
    y = std(node, axis, unbiased, keepdims, correction=correction, ddof=ddof)
    return y, mean(node, axis, keepdims)
