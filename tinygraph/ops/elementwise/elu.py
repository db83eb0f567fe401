"""ELU, the exponential linear unit, with its kin SELU and CELU.

    elu   y  = max(x, 0) + alpha * (exp(min(x, 0)) - 1)
          gx = gy where x > 0, else gy * alpha * exp(x)     (the derivative at 0 is taken as alpha)
    selu  y  = scale * elu(x), with an alpha and a scale that keep mean 0 and variance 1
    celu  y  = max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)
          gx = gy * exp(min(x, 0) / alpha)                  (no kink: the derivative at 0 is 1)

Source: Clevert, Unterthiner, Hochreiter, "Fast and accurate deep network learning by exponential
linear units (ELUs)", ICLR 2016, equation 15; Klambauer, Unterthiner, Mayr, Hochreiter,
"Self-normalizing neural networks", NIPS 2017; Barron, "Continuously differentiable exponential
linear units", arXiv:1704.07483, 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen, number
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.elementwise.leaky_relu import one_above_zero
from tinygraph.ops.elementwise.unary import Unary, unary


@frozen
class Elu(Unary, Op):
    alpha: float = 1.0
    scale: float = 1.0

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.minimum(x, 0, out=y)
        np.expm1(y, out=y)  # exp(y) - 1 would lose the digits of a small y
        y *= self.alpha
        y += np.maximum(x, 0, out=mem.empty(x.shape, x.dtype))
        if self.scale != 1:
            y *= self.scale

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.minimum(x, 0, out=gx)
        np.exp(gx, out=gx)  # 1 where x > 0
        if self.alpha != 1:
            factor = mem.empty(x.shape, x.dtype)
            one_above_zero(mem, x, self.alpha, factor)
            gx *= factor
        if self.scale != 1:
            gx *= self.scale
        gx *= gy

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return self.alpha, self.scale


@frozen
class Selu(Elu):
    alpha: float = 1.6732632423543772
    scale: float = 1.0507009873554805


@frozen
class Celu(Unary, Op):
    alpha: float = 1.0

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.minimum(x, 0, out=y)
        y /= self.alpha
        np.expm1(y, out=y)
        y *= self.alpha
        y += np.maximum(x, 0, out=mem.empty(x.shape, x.dtype))

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.minimum(x, 0, out=gx)
        gx /= self.alpha
        np.exp(gx, out=gx)
        gx *= gy

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return (self.alpha,)


@unary
def elu(x: Operand, alpha: float = 1.0) -> Tensor:
    """Exponential linear unit, `where(x > 0, x, alpha * (exp(x) - 1))`, element by element.

    Parameters
    ----------
    alpha : float
        The output tends to -alpha far below 0.  The derivative at 0 is taken as alpha.

    Returns
    -------
    Tensor
        ... NaN propagates, -inf gives -alpha.

    Raises
    ------
    ArgumentError
        `alpha` is not a finite number.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.elu([-100.0, 0.0, 3.0], alpha=0.5).value
    array([-0.5,  0. ,  3. ], dtype=float32)
    """
    return Elu(number("elu", "alpha", alpha))(x)


@unary
def selu(x: Operand) -> Tensor:
    """ELU with an alpha and a scale by which layers keep mean 0 and variance 1 by themselves.

    Returns
    -------
    Tensor
        ... -1.758 at least.  NaN propagates.  The derivative at 0 is that from below, 1.758.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.selu([-100.0, 0.0, 1.0]).value.round(4)
    array([-1.7581,  0.    ,  1.0507], dtype=float32)
    """
    return Selu()(x)


@unary
def celu(x: Operand, alpha: float = 1.0) -> Tensor:
    """ELU without a kink, `where(x > 0, x, alpha * (exp(x / alpha) - 1))`, element by element.

    Parameters
    ----------
    alpha : float
        Above 0.  The output tends to -alpha far below 0.

    Returns
    -------
    Tensor
        ... NaN propagates, -inf gives -alpha.

    Raises
    ------
    ArgumentError
        `alpha` is not a number above 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.celu([-100.0, 0.0, 3.0], alpha=0.5).value
    array([-0.5,  0. ,  3. ], dtype=float32)
    """
    return Celu(number("celu", "alpha", alpha, above=0))(x)
