"""Sigmoid, the logistic function.

    y  = 1 / (1 + exp(-x))
    gx = gy * y * (1 - y)

As written it is right for every x, and keeps all digits of small results: for x far below 0,
exp(-x) may be infinite, and 1 / inf is the 0 that the result rounds to.  Nothing is subtracted and
nothing is infinite over infinite.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import floats
from tinygraph.ops.elementwise.unary import Unary, float_unary


@frozen
class Sigmoid(Unary, Op):
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.negative(x, out=y)
        np.exp(y, out=y)
        y += 1
        np.reciprocal(y, out=y)

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        np.subtract(1, y, out=gx)
        gx *= y
        gx *= gy


@float_unary
def sigmoid(x: Operand) -> Tensor:
    """The logistic function, `1 / (1 + exp(-x))`, element by element: from 0 to 1.

    References
    ----------
    Goodfellow, Bengio, Courville, "Deep Learning", MIT Press 2016, section 3.10.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.sigmoid([-1000.0, 0.0, 1000.0]).value
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return Sigmoid()(floats(x))
