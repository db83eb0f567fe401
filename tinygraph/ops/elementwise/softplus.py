"""Softplus, a smooth ReLU.

    z  = beta * x
    y  = max(x, 0) + log(1 + exp(-|z|)) / beta      exp never overflows; without the logarithm where
    gx = gy / (1 + exp(-z)), but gy there           z > threshold: it is below rounding in float32

Source: Dugas, Bengio, Belisle, Nadeau, Garcia, "Incorporating second-order functional knowledge for
better option pricing", NIPS 2000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen, number
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.elementwise.sigmoid import Sigmoid
from tinygraph.ops.elementwise.unary import Unary, unary


def softplus_tail(z: Array, tail: Array) -> None:
    """tail = log(1 + exp(-|z|)): what softplus has above max(z, 0)."""
    np.abs(z, out=tail)
    np.negative(tail, out=tail)
    np.exp(tail, out=tail)
    np.log1p(tail, out=tail)  # log(1 + tail) would lose the digits of a small tail


@frozen
class Softplus(Unary, Op):
    beta: float = 1.0
    threshold: float = 20.0

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        z = np.multiply(x, self.beta, out=mem.empty(x.shape, x.dtype))
        softplus_tail(z, y)
        y /= self.beta
        y *= np.less_equal(z, self.threshold, out=mem.empty(x.shape, bool))
        y += np.maximum(x, 0, out=z)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        z = np.multiply(x, self.beta, out=mem.empty(x.shape, x.dtype))
        Sigmoid().function(mem, z, gx)
        np.maximum(gx, np.greater(z, self.threshold, out=mem.empty(x.shape, bool)), out=gx)
        gx *= gy

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return self.beta, self.threshold


@unary
def softplus(x: Operand, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta * x)) / beta`, element by element: a ReLU without a kink.

    Parameters
    ----------
    beta : float
        Above 0.  The larger, the closer to ReLU.
    threshold : float
        At least 0.  Where `beta * x` is above it, the result is `x` and the derivative is 1.

    Returns
    -------
    Tensor
        ... NaN propagates, -inf gives 0.

    Raises
    ------
    ArgumentError
        `beta` or `threshold` is out of its range.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.softplus([-1000.0, 0.0, 30.0]).value.round(4)
    array([ 0.    ,  0.6931, 30.    ], dtype=float32)
    """
    beta = number("softplus", "beta", beta, above=0)
    return Softplus(beta, number("softplus", "threshold", threshold, least=0))(x)
