"""Activations of straight pieces: hardtanh, relu6, hardsigmoid, hardswish.

    a b          the bounds of hardtanh, hyper-parameters; 0 and 6 for relu6

    hardtanh     y = min(max(x, a), b)              gx = gy where a < x < b, else 0
    hardsigmoid  y = min(max(x + 3, 0), 6) / 6      gx = gy / 6 where -3 < x < 3, else 0
    hardswish    y = x * hardsigmoid(x)             gx = 0 where x <= -3, gy where x >= 3,
                                                         else gy * (x / 3 + 1/2)

At a bend the derivative is that of the level piece, as in PyTorch; of hardswish, that of the piece
outside.

Source: Howard et al., "Searching for MobileNetV3", ICCV 2019.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import frozen, number
from tinygraph.engine import Array, Memory, Op, Operand, Spec, Tensor
from tinygraph.ops.common import NUMBERS, rounded
from tinygraph.ops.elementwise.clip import require_in_range
from tinygraph.ops.elementwise.unary import Unary, number_unary, unary


def _between(mem: Memory, y: Array, low: float, high: float) -> Array:
    """Where y, which lies from low to high, is neither of them."""
    inside = np.not_equal(y, low, out=mem.empty(y.shape, bool))
    below = np.not_equal(y, high, out=mem.empty(y.shape, bool))
    return np.logical_and(inside, below, out=inside)


@frozen
class Hardtanh(Unary, Op):
    min_val: float = -1.0
    max_val: float = 1.0
    takes: ClassVar[str] = NUMBERS
    keeps: ClassVar[str] = "y"

    def infer(self, x: Spec) -> Spec:
        super().infer(x)
        if x.dtype.kind != "f":
            for argument, bound in zip(("min_val", "max_val"), self.numbers(x.dtype), strict=True):
                require_in_range(self.name, argument, bound, x.dtype)
        return x

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        low, high = self.numbers(x.dtype)
        np.maximum(x, low, out=y)
        np.minimum(y, high, out=y)

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.multiply(gy, _between(mem, y, self.min_val, self.max_val), out=gx)

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        """Both bounds as elements of x."""
        if dtype.kind != "f":
            return int(self.min_val), int(self.max_val)
        return rounded(self.min_val, dtype), rounded(self.max_val, dtype)


@frozen
class Relu6(Hardtanh):
    min_val: float = 0.0
    max_val: float = 6.0


@frozen
class Hardsigmoid(Unary, Op):
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.add(x, 3, out=y)
        np.maximum(y, 0, out=y)
        np.minimum(y, 6, out=y)
        y /= 6

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.multiply(gy, _between(mem, y, 0, 1), out=gx)
        gx /= 6


@frozen
class Hardswish(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        Hardsigmoid().function(mem, x, y)
        y *= np.maximum(x, -3, out=mem.empty(x.shape, x.dtype))  # -inf * 0 would be NaN

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.maximum(x, -3, out=gx)
        np.minimum(gx, 3, out=gx)
        gx /= 3
        gx += 0.5
        inside, above = mem.empty(x.shape, bool), mem.empty(x.shape, bool)
        np.logical_and(np.greater(x, -3, out=inside), np.less(x, 3, out=above), out=inside)
        gx *= inside
        gx += np.greater_equal(x, 3, out=above)
        gx *= gy


@number_unary
def hardtanh(x: Operand, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x brought into an interval: `min(max(x, min_val), max_val)`, element by element.

    Parameters
    ----------
    min_val, max_val : float
        The bounds.  At them the derivative is 0, where that of `tg.clip` is 1.  For integers their
        fractions are cut off.

    Returns
    -------
    Tensor
        ... NaN propagates.

    Raises
    ------
    ArgumentError
        A bound is not a finite number or beyond the range of an integer `x`, or `max_val` is not
        above `min_val`.

    References
    ----------
    Collobert, "Large scale machine learning", thesis, Université Paris VI 2004.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.hardtanh([-2.0, 0.5, 3.0]).value
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
    low = number("hardtanh", "min_val", min_val)
    return Hardtanh(low, number("hardtanh", "max_val", max_val, above=low))(x)


@number_unary
def relu6(x: Operand) -> Tensor:
    """ReLU that stops at 6: `min(max(x, 0), 6)`, element by element.

    Returns
    -------
    Tensor
        ... NaN propagates.  The derivative is 0 at 0 and at 6.

    References
    ----------
    Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.relu6([-2.0, 0.5, 8.0]).value
    array([0. , 0.5, 6. ], dtype=float32)
    """
    return Relu6()(x)


@unary
def hardsigmoid(x: Operand) -> Tensor:
    """Sigmoid of three straight pieces, `relu6(x + 3) / 6`, element by element: from 0 to 1.

    Returns
    -------
    Tensor
        ... NaN propagates.  The derivative is 0 at -3 and at 3.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.hardsigmoid([-4.0, 0.0, 1.5]).value
    array([0.  , 0.5 , 0.75], dtype=float32)
    """
    return Hardsigmoid()(x)


@unary
def hardswish(x: Operand) -> Tensor:
    """SiLU with a gate of straight pieces, `x * relu6(x + 3) / 6`, element by element.

    Returns
    -------
    Tensor
        ... NaN propagates, -inf gives 0.  The derivative is 0 at -3 and 1 at 3.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.hardswish([-1.5, 1.5, 4.0]).value
    array([-0.375,  1.125,  4.   ], dtype=float32)
    """
    return Hardswish()(x)
