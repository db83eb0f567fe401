"""logsumexp: the logarithm of a sum of exponentials, a smooth maximum.

    m  = max of x where it is finite, else 0        translated by m: exp never overflows
    y  = m + log(sum of exp(x - m))
    gx = gy * exp(x - y), the softmax of x          (0 where all of x is -inf, and so is y)

Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions", IMA
Journal of Numerical Analysis 41, 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Axis, Gradients, Needs, Op, Operand, Tensor, reduced_shape
from tinygraph.engine.memory import Memory
from tinygraph.ops.common import Sets, arranged, as_axes, floats, sets_of, total
from tinygraph.ops.reductions.reductions import Reduction, reduction


def exponentials_of_slices(mem: Memory, x: Array, sets: Sets) -> tuple[Array, Sets]:
    """All stages but the last: what the slices of each set leave, and the sets that these form.

    The numbers are (2, parts): maxima m, and sums of exp(x - m).  Where each set has one slice,
    nothing is launched: no numbers, and the sets themselves.
    """
    kernel = op_kernel("logsumexp", "logsumexp_forward", x.dtype)
    null = mem.empty((0,), x.dtype)
    exponentials = null  # of the elements: there are none in the first stage
    while sets.slices > 1:
        parts = mem.empty((2, sets.outputs * sets.slices), x.dtype)
        sets.launch(kernel, x, exponentials, parts, null)
        exponentials, sets = parts, sets.parts()
    return exponentials, sets


def exponentials_of_sets(mem: Memory, x: Array, sets: Sets) -> Array:
    """(2, outputs): of each set the maximum m, and the sum of exp(x - m)."""
    exponentials, last = exponentials_of_slices(mem, x, sets)
    whole = mem.empty((2, sets.outputs), x.dtype)
    kernel = op_kernel("logsumexp", "logsumexp_forward", x.dtype)
    last.launch(kernel, x, exponentials, whole, mem.empty((0,), x.dtype))
    return whole


@frozen
class Logsumexp(Reduction, Op):
    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        kept = reduced_shape(x.shape, axes, keepdims=True)
        m = mem.empty(kept, x.dtype)
        np.max(x, axis=axes, keepdims=True, initial=-np.inf, out=m)  # of nothing: -inf
        np.copyto(m, 0, where=~np.isfinite(m))  # inf - inf would be NaN
        powers = np.subtract(x, m, out=mem.empty(x.shape, x.dtype))
        np.exp(powers, out=powers)
        y = total(powers, axes, mem.empty(kept, x.dtype))
        np.log(y, out=y)
        y += m
        return y.reshape(shape), (x, y)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, y = saved  # y has all axes of x
        level = mem.empty(y.shape, y.dtype)
        level[...] = y
        np.copyto(level, 0, where=y == -np.inf)
        gx = np.subtract(x, level, out=mem.empty(x.shape, x.dtype))
        np.exp(gx, out=gx)
        gx *= gy.reshape(y.shape)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        source = arranged(mem, x, axes)
        exponentials, sets = exponentials_of_slices(mem, source, sets_of(x.shape, axes))
        y = mem.empty(shape, x.dtype)
        kernel = op_kernel("logsumexp", "logsumexp_forward", x.dtype)
        sets.launch(kernel, source, exponentials, mem.empty((0,), x.dtype), y)
        return y, (x.shape, source, y) if mem.needs[0] else None


@reduction
def logsumexp(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """`log(sum(exp(x)))` over axes, right also where exp(x) overflows or underflows.

    Parameters
    ----------
    x : Tensor
        Any shape; integers and bools are made float32.

    Returns
    -------
    Tensor
        ... NaN propagates.  Where any element is +inf, the result is +inf; where all are -inf,
        or there is none, it is -inf, and their gradient is 0.

    Raises
    ------
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.logsumexp([[0.0, 0.0], [100.0, 100.0]], axis=1).value.round(4)
    array([  0.6931, 100.6931], dtype=float32)
    """
    return Logsumexp(as_axes("logsumexp", axis), bool(keepdims))(floats(x))
