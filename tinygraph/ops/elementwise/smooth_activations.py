"""Smooth activations: silu, mish, logsigmoid, softsign.

    silu        y = x / (1 + exp(-x))           gx = gy * s * (1 + x * (1 - s)),  s = sigmoid(x)
    mish        y = x * t                       gx = gy * (t + x * 4 * w * (w + 1) / (n + 2)**2)
                t = tanh(ln(1 + exp(x))) = n / (n + 2),  w = exp(x),  n = w * (w + 2)
    logsigmoid  y = -ln(1 + exp(-x))            gx = gy * sigmoid(-x)
    softsign    y = x / (1 + |x|)               gx = gy / (1 + |x|)**2

Nothing is subtracted from what is nearly the same, and where an exponential would overflow x is
held: silu and mish are 0 far below 0 and x far above.  Of infinities softsign makes NaN, as in
PyTorch; the others have their limits.

Source: Elfwing, Uchibe, Doya, "Sigmoid-weighted linear units for neural network function
approximation in reinforcement learning", Neural Networks 107, 2018; Misra, "Mish: a self
regularized non-monotonic activation function", BMVC 2020; Glorot, Bengio, "Understanding the
difficulty of training deep feedforward neural networks", AISTATS 2010.
"""

from __future__ import annotations

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import floats
from tinygraph.ops.elementwise.sigmoid import Sigmoid
from tinygraph.ops.elementwise.softplus import softplus_tail
from tinygraph.ops.elementwise.unary import Unary, float_unary, unary

FAR = 800  # exp(-800) is 0 in float64
HIGH = 40  # where tanh(ln(1 + exp(x))) is 1 in float64, and exp(2 * x) is no infinity in float32


def _held(mem: Memory, x: Array, high: float) -> Array:
    z = np.maximum(x, -FAR, out=mem.empty(x.shape, x.dtype))
    return np.minimum(z, high, out=z)


@frozen
class Silu(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        z = np.maximum(x, -FAR, out=mem.empty(x.shape, x.dtype))  # -inf / inf would be NaN
        np.negative(z, out=y)
        np.exp(y, out=y)
        y += 1
        np.divide(z, y, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        z, s = _held(mem, x, FAR), mem.empty(x.shape, x.dtype)
        Sigmoid().function(mem, z, s)
        np.subtract(1, s, out=gx)
        gx *= z
        gx += 1
        gx *= s
        gx *= gy


@frozen
class Mish(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        w = np.exp(_held(mem, x, HIGH), out=mem.empty(x.shape, x.dtype))
        np.add(w, 2, out=y)
        y *= w
        np.add(y, 2, out=w)
        y /= w
        y *= np.maximum(x, -FAR, out=w)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        z = _held(mem, x, HIGH)
        w = np.exp(z, out=mem.empty(x.shape, x.dtype))
        n = np.add(w, 2, out=mem.empty(x.shape, x.dtype))
        n *= w
        np.add(w, 1, out=gx)
        gx *= w
        gx *= 4
        gx *= z
        np.add(n, 2, out=w)
        gx /= w
        gx += n
        gx /= w  # (n + 4 * z * w * (w + 1) / (n + 2)) / (n + 2)
        gx *= gy


@frozen
class Logsigmoid(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        softplus_tail(x, y)
        np.subtract(np.minimum(x, 0, out=mem.empty(x.shape, x.dtype)), y, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.exp(x, out=gx)
        gx += 1
        np.divide(gy, gx, out=gx)


@frozen
class Softsign(Unary, Op):
    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.abs(x, out=y)
        y += 1
        np.divide(x, y, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        np.abs(x, out=gx)
        gx += 1
        np.square(gx, out=gx)
        np.divide(gy, gx, out=gx)


@unary
def silu(x: Operand) -> Tensor:
    """Sigmoid linear unit, also called swish: `x * sigmoid(x)`, element by element.

    Returns
    -------
    Tensor
        ... -0.279 at least.  NaN propagates, -inf gives 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.silu([0.0, 1.0, 100.0]).value.round(4)
    array([  0.    ,   0.7311, 100.    ], dtype=float32)
    """
    return Silu()(x)


@unary
def mish(x: Operand) -> Tensor:
    """`x * tanh(softplus(x))`, element by element: close to SiLU.

    Returns
    -------
    Tensor
        ... -0.309 at least.  NaN propagates, -inf gives 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.mish([0.0, 1.0, 100.0]).value.round(4)
    array([  0.    ,   0.8651, 100.    ], dtype=float32)
    """
    return Mish()(x)


@unary
def logsigmoid(x: Operand) -> Tensor:
    """The logarithm of the logistic function, element by element: from -inf to 0.

    Returns
    -------
    Tensor
        ... NaN propagates.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.logsigmoid([-100.0, 0.0, 1.0]).value.round(4)
    array([-100.    ,   -0.6931,   -0.3133], dtype=float32)
    """
    return Logsigmoid()(x)


@float_unary
def softsign(x: Operand) -> Tensor:
    """`x / (1 + abs(x))`, element by element: from -1 to 1, more slowly than tanh.

    Returns
    -------
    Tensor
        ... An infinity gives NaN.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.softsign([1.0, -3.0]).value
    array([ 0.5 , -0.75], dtype=float32)
    """
    return Softsign()(floats(x))
