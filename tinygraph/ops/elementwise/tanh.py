"""Tanh, the hyperbolic tangent.

    y  = (exp(x) - exp(-x)) / (exp(x) + exp(-x))
    gx = gy * (1 - y**2)

Source: LeCun, Bottou, Orr, Mueller, "Efficient backprop", in Neural Networks: Tricks of the Trade,
Springer 1998, section 4.4.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import floats
from tinygraph.ops.elementwise.unary import Unary, float_unary


@frozen
class Tanh(Unary, Op):
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.tanh(x, out=y)

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.square(y, out=gx)
        np.subtract(1, gx, out=gx)
        gx *= gy


@float_unary
def tanh(x: Operand) -> Tensor:
    """The hyperbolic tangent, element by element: from -1 to 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.tanh([-1000.0, 0.0, 1000.0]).value
    array([-1.,  0.,  1.], dtype=float32)
    """
    return Tanh()(floats(x))
