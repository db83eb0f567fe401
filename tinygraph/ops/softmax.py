"""Softmax and its logarithm, over one axis.

    m = max of x, s = sum of exp(x - m)          translated by the maximum: exp never overflows

    softmax      y = exp(x - m) / s              gx = y * (gy - sum of gy * y)
    log_softmax  y = x - m - log(s)              gx = gy - exp(y) * sum of gy

Source: Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, sections 4.1 and 6.2.2.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.errors import ShapeError, explain
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.shapes import Array, Shape, Spec, normalize_axes, require_float
from tinygraph.tensor import Operand, Tensor


def _one_along(shape: Shape, axis: int) -> Shape:
    """`shape` with size 1 on one axis: the shape of a maximum or a sum that keeps it."""
    axis %= len(shape)
    return (*shape[:axis], 1, *shape[axis + 1 :])


def translated(mem: Memory, x: Array, axis: int) -> Array:
    """x minus its maximum along the axis."""
    maximum = np.max(x, axis=axis, keepdims=True, out=mem.empty(_one_along(x.shape, axis), x.dtype))
    return np.subtract(x, maximum, out=mem.empty(x.shape, x.dtype))


@dataclass(frozen=True)
class Softmax(Op):
    axis: int

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        (axis,) = normalize_axes(self.name, self.axis, x.ndim)
        if not x.shape[axis]:
            raise ShapeError(
                explain(self.name, "x", f"at least one element along axis {self.axis}", x.shape)
            )
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = translated(mem, x, self.axis)
        np.exp(y, out=y)
        total = mem.empty(_one_along(x.shape, self.axis), x.dtype)
        y /= np.sum(y, axis=self.axis, keepdims=True, out=total)
        return y, y

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = np.multiply(gy, y, out=mem.empty(y.shape, y.dtype))
        total = mem.empty(_one_along(y.shape, self.axis), y.dtype)
        np.sum(gx, axis=self.axis, keepdims=True, out=total)
        np.subtract(gy, total, out=gx)
        gx *= y
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if self.axis % specs[0].ndim != 0 else None


@dataclass(frozen=True)
class LogSoftmax(Softmax):
    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = translated(mem, x, self.axis)
        powers = np.exp(y, out=mem.empty(x.shape, x.dtype))
        total = mem.empty(_one_along(x.shape, self.axis), x.dtype)
        np.sum(powers, axis=self.axis, keepdims=True, out=total)
        y -= np.log(total, out=total)
        return y, y

    def backward(self, mem: Memory, gy: Array, y: Array, needs: tuple[bool, ...]) -> Gradients:
        total = mem.empty(_one_along(y.shape, self.axis), y.dtype)
        np.sum(gy, axis=self.axis, keepdims=True, out=total)
        gx = np.exp(y, out=mem.empty(y.shape, y.dtype))
        gx *= total
        np.subtract(gy, gx, out=gx)
        return (gx,)


def softmax(x: Operand, axis: int = -1) -> Tensor:
    """Probabilities in proportion to exp(x): positive, and with sum 1 along `axis`.

    Parameters
    ----------
    x : Tensor
        At least one axis; float32 or float64.
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
        `x` is not of a float dtype.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.3.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.softmax([1000.0, 1000.0]).value
    array([0.5, 0.5], dtype=float32)
    """
    return Softmax(axis)(x)


def log_softmax(x: Operand, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, without the loss of digits that log(softmax(x)) would have.

    Parameters
    ----------
    x : Tensor
        At least one axis; float32 or float64.
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
        `x` is not of a float dtype.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 6.2.2.3.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.log_softmax([0.0, 1000.0]).value
    array([-1000.,     0.], dtype=float32)
    """
    return LogSoftmax(axis)(x)
