"""Product over axes.

    R     the elements that meet in one element of the output: all combinations of the reduced axes

    y[k]     = product over r in R of x[k, r]
    gx[k, r] = gy[k] * product over all s in R but r of x[k, s]

The product of the others is P[k] / x[k, r], where P is the product of the elements that are not 0,
as long as none of the others is 0; then it is 0.  At an only 0 it is P itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor
from tinygraph.engine.spec import Array, Axis, Spec, reduced_shape, require_float
from tinygraph.ops.common import arranged, as_axes, astype, given_in, sets_of, with_dtype
from tinygraph.ops.reductions.reductions import Reduction, reduction
from tinygraph.ops.reductions.sum import as_summed, sum_dtype


@frozen
class Prod(Reduction, Op):
    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        return Spec(self.over(x.shape)[1], sum_dtype(x.dtype))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, sum_dtype(x.dtype))
        np.multiply.reduce(x, axis=axes, dtype=y.dtype, out=y, keepdims=self.keepdims)
        return y, x if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, x: Array, needs: Needs) -> Gradients:
        axes, _ = self.over(x.shape)
        kept = reduced_shape(x.shape, axes, keepdims=True)
        is_zero = np.equal(x, 0, out=mem.empty(x.shape, bool))
        gx = mem.empty(x.shape, x.dtype)
        gx[...] = x
        np.copyto(gx, 1, where=is_zero)
        p = np.multiply.reduce(gx, axis=axes, keepdims=True, out=mem.empty(kept, x.dtype))
        p *= gy.reshape(kept)
        np.divide(p, gx, out=gx)
        zeros = mem.empty(kept, np.int64)
        np.add.reduce(is_zero, axis=axes, dtype=np.int64, keepdims=True, out=zeros)
        among_others = np.not_equal(zeros, is_zero, out=mem.empty(x.shape, bool))
        np.copyto(gx, 0, where=among_others)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, sum_dtype(x.dtype))
        source, sets = arranged(mem, as_summed(mem, x), axes), sets_of(x.shape, axes)
        kernel = self.kernel("forward", source.dtype)
        null = mem.empty((0,), source.dtype)
        factors = null  # of the elements: there are none in the first stage
        while sets.slices > 1:
            parts = mem.empty((2, sets.outputs * sets.slices), source.dtype)
            sets.launch(kernel, source, factors, parts, null)
            factors, sets = parts, sets.parts()
        whole = mem.empty((2, y.size), source.dtype) if mem.needs[0] else null
        sets.launch(kernel, source, factors, whole, y.view(source.dtype))
        return y, (x.shape, source, whole) if mem.needs[0] else None


@reduction
@with_dtype
def prod(x: Operand, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of the elements, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.

    Returns
    -------
    Tensor
        Of the dtype of `x`, but int64 for bools and small integers, or as `dtype` says.  The
        product of nothing is 1.
        The gradient is right where elements are 0, too.

    Raises
    ------
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.prod([[1.0, 2.0], [3.0, 4.0]], axis=0).value
    array([3., 8.], dtype=float32)
    """
    y = Prod(as_axes("prod", axis), bool(keepdims))(given_in("prod", x, dtype))
    return y if dtype is None else astype(y, dtype)
