"""GELU, the Gaussian error linear unit: x times a gate that opens from 0 to 1.

    y  = x * g(x)          gx = gy * (g(x) + x * g'(x))

    "none"   g = erfc(-x / sqrt(2)) / 2, the normal distribution    g' = exp(-x**2 / 2) / sqrt(2 pi)
    "tanh"   g = (1 + tanh(u)) / 2                                  g' = 2 * g * (1 - g) * u'
             u = sqrt(2 / pi) * (x + 0.044715 * x**3)

Both gates are symmetric, g(x) + g(-x) = 1.  So what is computed is h(a) = g(-a) of a = |x|, which
has all its digits.  From it come y, max(x, 0) - a * h, and the derivative: d = h - a * g'(a) for
x <= 0, and 1 - d else.

Source: Hendrycks, Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.base import frozen, one_of
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Tensor
from tinygraph.ops.elementwise.erf import right_of
from tinygraph.ops.elementwise.unary import Unary, unary

GATES = ("none", "tanh")
BLOCK = 65536  # elements: they stay in a cache, and calls take longer than it costs to make them
CLOSED = 39.0  # from there on h is 0 in float64, too


def _in_blocks(f: Callable[..., None], inputs: list[Array], outputs: list[Array]) -> None:
    """Call f on blocks of all arrays, one-dimensional and small, whatever their layout."""
    access = [["readonly"]] * len(inputs) + [["writeonly"]] * len(outputs)
    flags = ["external_loop", "buffered", "zerosize_ok"]
    with np.nditer(inputs + outputs, flags, access, buffersize=BLOCK) as blocks:  # type: ignore
        for block in blocks:
            f(*block)


@frozen
class Gelu(Unary, Op):
    """One by one in blocks, and the derivative is kept; in a chain it is computed again."""

    approximate: str = "none"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        a = np.minimum(np.abs(x), CLOSED)  # inf * 0 is NaN
        h, _ = self._closing(a)
        h *= a
        np.subtract(np.maximum(x, 0), h, out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        a = np.minimum(np.abs(x), CLOSED)
        np.multiply(gy, self._derivative(x, a, *self._closing(a)), out=gx)

    def _closing(self, a: Array) -> tuple[Array, Array]:
        """h(a) and g'(a), for 0 <= a <= CLOSED."""
        if self.approximate == "none":
            h, slope = right_of(a * math.sqrt(0.5))
            h *= 0.5
            slope *= 1 / math.sqrt(2 * math.pi)
            return h, slope
        square = a * a
        h = (1 - np.tanh(math.sqrt(2 / math.pi) * a * (1 + 0.044715 * square))) * 0.5
        slope = 2 * h * (1 - h) * (math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * square))
        return h, slope

    def _derivative(self, x: Array, a: Array, h: Array, slope: Array) -> Array:
        """d, or 1 - d where x > 0, as d + (x > 0) * (1 - 2 * d)."""
        slope *= a
        d = h - slope
        other = d * -2
        other += 1
        other *= np.greater(x, 0)
        d += other
        return d

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        closed, zeros = (np.full(min(BLOCK, x.size), n, x.dtype) for n in (CLOSED, 0))

        def block(x: Array, y: Array, *kept: Array) -> None:
            # numpy takes the smaller of two arrays in a third of the time of an array and a number
            a = np.minimum(np.abs(x), closed[: len(x)])
            h, slope = self._closing(a)
            np.subtract(np.maximum(x, zeros[: len(x)]), a * h, out=y)
            for derivative in kept:
                derivative[...] = self._derivative(x, a, h, slope)

        outputs = [mem.empty(x.shape, x.dtype) for _ in range(1 + mem.needs[0])]
        _in_blocks(block, [x], outputs)
        return outputs[0], outputs[1] if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, derivative: Any, needs: Needs) -> Gradients:
        return (np.multiply(gy, derivative, out=mem.empty(gy.shape, gy.dtype)),)

    @property
    def functor(self) -> str:
        return "Gelu<Normal>" if self.approximate == "none" else "Gelu<Tanh>"


@unary
def gelu(x: Operand, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit: `x` times the probability that a normal number is below `x`.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        The normal distribution itself, or the hyperbolic tangent that is close to it.

    Returns
    -------
    Tensor
        ... NaN propagates, -inf gives 0.

    Raises
    ------
    ArgumentError
        `approximate` is neither of the two.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.gelu([-100.0, 0.0, 1.0, 100.0]).value.round(4) + 0
    array([  0.    ,   0.    ,   0.8413, 100.    ], dtype=float32)
    """
    return Gelu(one_of("gelu", "approximate", approximate, GATES))(x)
