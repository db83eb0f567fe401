"""GELU, the Gaussian error linear unit: x times a gate that opens from 0 to 1.

    y  = x * g(x)          gx = gy * (g(x) + x * g'(x))

    "none"   g = erfc(-x / sqrt(2)) / 2, the normal distribution    g' = exp(-x**2 / 2) / sqrt(2 pi)
    "tanh"   g = (1 + tanh(u)) / 2                                  g' = 2 * g * (1 - g) * u'
             u = sqrt(2 / pi) * (x + 0.044715 * x**3)

Source: Hendrycks, Gimpel, "Gaussian error linear units (GELUs)", arXiv:1606.08415, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.checks import one_of
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Needs, Op
from tinygraph.ops.erf import erfc
from tinygraph.ops.shared.unary import Unary, unary
from tinygraph.shapes import Array
from tinygraph.tensor import Operand, Tensor

GATES = ("none", "tanh")
BLOCK = 8192  # elements; the dozens of steps of a gate then run in cache
CLOSED = -40.0  # there, and below, the gate is 0 in float64; at 40 it is 1


def _in_blocks(f: Callable[..., None], inputs: list[Array], outputs: list[Array]) -> None:
    """Call f on blocks of all arrays, one-dimensional and small, whatever their layout."""
    access = [["readonly"]] * len(inputs) + [["writeonly"]] * len(outputs)
    flags = ["external_loop", "buffered", "zerosize_ok"]
    with np.nditer(inputs + outputs, flags, access, buffersize=BLOCK) as blocks:  # type: ignore
        for block in blocks:
            f(*block)


@frozen
class Gelu(Unary, Op):
    """One by one in blocks, and the gate is kept; in a chain it is computed again."""

    approximate: str = "none"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        x = np.maximum(x, CLOSED)  # the limit at -inf is 0, but -inf * 0 is NaN
        np.multiply(x, self._gate(x), out=y)

    def gradient(self, mem: Memory, gy: Array, x: Array, gx: Array) -> None:
        x = np.minimum(np.maximum(x, CLOSED), -CLOSED)
        self._gradient(gy, x, self._gate(x), gx)

    def _gate(self, x: Array) -> Array:
        if self.approximate == "none":
            return erfc(x * -math.sqrt(0.5)) / 2
        u = math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)
        gate: Array = (1 + np.tanh(u)) / 2
        return gate

    def _gradient(self, gy: Array, x: Array, g: Array, gx: Array) -> None:
        """From the gate; x is bounded, for inf * 0 is NaN."""
        if self.approximate == "none":
            slope = np.exp(x * x / -2) / math.sqrt(2 * math.pi)
        else:
            slope = 2 * g * (1 - g) * (math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x))
        np.multiply(gy, g + x * slope, out=gx)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        def block(x: Array, y: Array, *gate: Array) -> None:
            x = np.maximum(x, CLOSED)
            g = self._gate(x)
            np.multiply(x, g, out=y)
            for save in gate:
                save[...] = g

        outputs = [mem.empty(x.shape, x.dtype) for _ in range(1 + mem.needs[0])]
        _in_blocks(block, [x], outputs)
        return outputs[0], (x, outputs[1]) if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, kept: Any, needs: Needs) -> Gradients:
        def block(x: Array, g: Array, gy: Array, gx: Array) -> None:
            self._gradient(gy, np.clip(x, CLOSED, -CLOSED), g, gx)

        gx = mem.empty(gy.shape, gy.dtype)
        _in_blocks(block, [*kept, gy], [gx])
        return (gx,)

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
