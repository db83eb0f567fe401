"""Softmax and its logarithm, over one axis.

    m = max of x, s = sum of exp(x - m)          translated by the maximum: exp never overflows

    softmax      y = exp(x - m) / s              gx = y * (gy - sum of gy * y)
    log_softmax  y = x - m - log(s)              gx = gy - exp(y) * sum of gy

Source: Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, sections 4.1 and 6.2.2.3.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ShapeError, frozen
from tinygraph.cuda import Kernel, op_kernel
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor
from tinygraph.engine.spec import Array, Shape, Spec, normalize_axes, require_float
from tinygraph.ops.common import Sets, documented, given_in, maxima, sets_of, sums, with_dtype
from tinygraph.ops.reductions.logsumexp import exponentials_of_sets
from tinygraph.ops.reductions.sum import sum_sets


def translated(mem: Memory, x: Array, axis: int) -> Array:
    """x minus its maximum along the axis."""
    return np.subtract(x, maxima(mem, x, axis), out=mem.empty(x.shape, x.dtype))


@frozen
class Softmax(Op):
    axis: int

    kind: ClassVar[str] = "Softmax"  # what the kernels are templated on, beside the dtype

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        (axis,) = normalize_axes(self.name, self.axis, x.ndim)
        if not x.shape[axis]:
            expected = f"at least one element along axis {self.axis}"
            raise ShapeError(self.name, "x", expected, x.shape)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = translated(mem, x, self.axis)
        np.exp(y, out=y)
        y /= sums(mem, y, self.axis)
        return y, y

    def backward(self, mem: Memory, gy: Array, y: Array, needs: Needs) -> Gradients:
        gx = np.multiply(gy, y, out=mem.empty(y.shape, y.dtype))
        np.subtract(gy, sums(mem, gx, self.axis), out=gx)
        gx *= y
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        sets, y = self._sets(x.shape), mem.empty(x.shape, x.dtype)
        exponentials = mem.empty((0,), x.dtype)
        if sets.slices > 1:  # longer than what a group of threads owns
            exponentials = exponentials_of_sets(mem, x, sets)
        sets.launch(self._kernel("softmax_forward", x.dtype), x, exponentials, y)
        return y, y

    def backward_kernel(self, mem: Memory, gy: Array, y: Array, needs: Needs) -> Gradients:
        sets, gx = self._sets(y.shape), mem.empty(y.shape, y.dtype)
        totals = mem.empty((sets.outputs if sets.slices > 1 else 0,), y.dtype)
        if sets.slices > 1:
            self._sum_terms(mem, gy, y, sets, totals)
        sets.launch(self._kernel("softmax_backward", y.dtype), gy, y, totals, gx)
        return (gx,)

    def _sum_terms(self, mem: Memory, gy: Array, y: Array, sets: Sets, totals: Array) -> None:
        """Write the sum of gy * y over each set to totals."""
        products = mem.empty((sets.outputs, sets.slices), y.dtype)
        sets.launch(op_kernel("softmax", "product_sums", y.dtype), gy, y, products)
        sum_sets(mem, products, sets.parts(), totals)

    def _sets(self, shape: Shape) -> Sets:
        return sets_of(shape, normalize_axes(self.name, self.axis, len(shape)))

    def _kernel(self, function: str, dtype: np.dtype[Any]) -> Kernel:
        return op_kernel("softmax", function, dtype, self.kind)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.axis % specs[0].ndim != 0 else None


@frozen
class LogSoftmax(Softmax):
    kind: ClassVar[str] = "LogSoftmax"

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = translated(mem, x, self.axis)
        total = sums(mem, np.exp(y, out=mem.empty(x.shape, x.dtype)), self.axis)
        y -= np.log(total, out=total)
        return y, y

    def backward(self, mem: Memory, gy: Array, y: Array, needs: Needs) -> Gradients:
        gx = np.exp(y, out=mem.empty(y.shape, y.dtype))
        gx *= sums(mem, gy, self.axis)
        np.subtract(gy, gx, out=gx)
        return (gx,)

    def _sum_terms(self, mem: Memory, gy: Array, y: Array, sets: Sets, totals: Array) -> None:
        """Write the sum of gy over each set to totals."""
        sum_sets(mem, gy, sets, totals)


_over_classes = documented(
    """
    Parameters
    ----------
    x : Tensor
        At least one axis; float32 or float64, or what `dtype` makes one of these.
    axis : int
        The axis of the classes.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    ShapeError
        There is no such axis, or it is empty.
    DtypeError
        `x`, or what `dtype` says, is not of a float dtype.
    """
)


@_over_classes
@with_dtype
def softmax(x: Operand, axis: int = -1, dtype: Any = None) -> Tensor:
    """Probabilities in proportion to exp(x): positive, and with sum 1 along `axis`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.softmax([1000.0, 1000.0]).value
    array([0.5, 0.5], dtype=float32)
    """
    return Softmax(axis)(given_in("softmax", x, dtype, "f"))


@_over_classes
@with_dtype
def log_softmax(x: Operand, axis: int = -1, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, without the loss of digits that log(softmax(x)) would have.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log_softmax([0.0, 1000.0]).value
    array([-1000.,     0.], dtype=float32)
    """
    return LogSoftmax(axis)(given_in("log_softmax", x, dtype, "f"))
