"""Counts over axes: how many elements are not 0, and whether any or all are not.

    R     the elements that meet in one element of the output: all combinations of the reduced axes

    count_nonzero    y[k] = how many r in R have x[k, r] != 0
    any              y[k] = count_nonzero(x)[k] != 0
    all              y[k] = how many r in R have x[k, r] = 0, compared with 0

None of them has a derivative.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Axis, Memory, Op, Operand, Spec, Tensor, require_float
from tinygraph.ops.common import arranged, as_axes, as_int64, documented, sets_of
from tinygraph.ops.elementwise.comparison import equal, not_equal
from tinygraph.ops.reductions.reductions import Reduction
from tinygraph.ops.reductions.sum import sum_sets


@frozen
class CountNonzero(Reduction, Op):
    counted: ClassVar[Any] = np.not_equal  # to 0
    kernel_counted: ClassVar[str] = "NotZero"  # in count_nonzero.cu

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind == "f":
            require_float(self.name, x=x)
        return Spec(self.over(x.shape)[1], np.dtype(np.int64))

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        counted = self.counted(x, 0, out=mem.empty(x.shape, bool))
        y = mem.empty(shape, np.int64)
        np.add.reduce(counted, axis=axes, dtype=np.int64, out=y, keepdims=self.keepdims)
        return y, None

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        axes, shape = self.over(x.shape)
        known = x if x.dtype.kind in "fb" else as_int64(mem, x)
        source, sets = arranged(mem, known, axes), sets_of(x.shape, axes)
        kernel = op_kernel("count_nonzero", "count_forward", source.dtype, self.kernel_counted)
        y = mem.empty(shape, np.int64)
        if sets.slices == 1:
            sets.launch(kernel, source, y)
            return y, None
        counts = mem.empty((sets.outputs, sets.slices), np.int64)
        sets.launch(kernel, source, counts)
        sum_sets(mem, counts, sets.parts(), y)
        return y, None

    backward_kernel: Any = Op.backward_kernel  # counts have no derivative


@frozen
class CountZero(CountNonzero):
    counted: ClassVar[Any] = np.equal
    kernel_counted: ClassVar[str] = "Zero"


_counting = documented(
    """
    Parameters
    ----------
    x : Tensor
        Any shape; float32, float64, integers or bools.  NaN is not 0.
    axis : int or tuple of int, optional
        The axes to reduce; all where it is not given.
    keepdims : bool
        Keep the reduced axes with size 1.

    Returns
    -------
    Tensor
        Without a gradient.

    Raises
    ------
    ShapeError
        There is no such axis, or one is named twice.
    DtypeError
        `axis` is no integer, or `x` is float16.
    """
)


@_counting
def count_nonzero(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0, over some axes or all.

    Returns
    -------
    Tensor
        ... int64.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.count_nonzero([[1.0, 0.0], [3.0, 4.0]], axis=1).value
    array([1, 2])
    """
    return CountNonzero(as_axes("count_nonzero", axis), bool(keepdims))(x)


@_counting
def any(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element is not 0, over some axes or all.

    Returns
    -------
    Tensor
        ... bool; False where there is no element.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.any([[1.0, 0.0], [0.0, 0.0]], axis=1).value
    array([ True, False])
    """
    return not_equal(CountNonzero(as_axes("any", axis), bool(keepdims))(x), 0)


@_counting
def all(x: Operand, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element is 0, over some axes or all.

    Returns
    -------
    Tensor
        ... bool; True where there is no element.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.all([[1.0, 0.0], [1.0, 2.0]], axis=1).value
    array([False,  True])
    """
    return equal(CountZero(as_axes("all", axis), bool(keepdims))(x), 0)
