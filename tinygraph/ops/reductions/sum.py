"""Sum over axes.

    R     the elements that meet in one element of the output: all combinations of the reduced axes

    y[k]     = sum over r in R of x[k, r]
    gx[k, r] = gy[k]                        each term has derivative 1, so gx repeats gy: a view

keepdims leaves the reduced axes, with size 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen
from tinygraph.base.dtypes import int64
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Axis, Memory, Operand, Shape, Spec, Tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import as_axes, astype, given_in, total, with_dtype
from tinygraph.ops.common.axes import Sets, arranged, as_int64, sets_of
from tinygraph.ops.reductions.reductions import Reduction, reduction, spread


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of sums: integers are added in int64 as in PyTorch, for small ones overflow."""
    return dtype if dtype.kind == "f" or dtype.itemsize == 8 else int64


def as_summed(mem: Memory, x: Array) -> Array:
    """x as the kernels add it: two's complement adds signed and unsigned numbers alike."""
    return x if x.dtype.kind == "f" else as_int64(mem, x)


def sum_sets(mem: Memory, x: Array, sets: Sets, y: Array) -> None:
    """Launch the kernels that write the sum of each set of x to y, stage by stage."""
    kernel = op_kernel("sum", "sum_forward", x.dtype)
    while sets.slices > 1:
        partial = mem.empty((sets.outputs, sets.slices), x.dtype)
        sets.launch(kernel, x, partial)
        x, sets = partial, sets.parts()
    sets.launch(kernel, x, y.view(x.dtype))


@frozen
class Sum(Reduction, Op):
    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        return Spec(self.over(x.shape)[1], sum_dtype(x.dtype))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, sum_dtype(x.dtype))
        return total(x, axes, y), x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        return (spread(gy, shape, self.over(shape)[0]),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        y = mem.empty(shape, sum_dtype(x.dtype))
        sum_sets(mem, arranged(mem, as_summed(mem, x), axes), sets_of(x.shape, axes), y)
        return y, (x.shape,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        # With keepdims the outputs of tiles have size 1 on axis 0, and add up all the same.
        return "sum" if 0 in self.over(specs[0].shape)[0] else "map"


@reduction
@with_dtype
def sum(x: Operand, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements, over some axes or all.

    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.

    Returns
    -------
    Tensor
        Of the dtype of `x`, but int64 for bools and small integers, or as `dtype` says.  The
        sum of nothing is 0.

    Raises
    ------
    DtypeError
        `axis` is no integer, or `x` is float16.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sum([[1.0, 2.0], [3.0, 4.0]], axis=0).value
    array([4., 6.], dtype=float32)
    """
    y = Sum(as_axes("sum", axis), bool(keepdims))(given_in("sum", x, dtype))
    return y if dtype is None else astype(y, dtype)
