"""ReLU, the rectified linear unit.

    y  = x   where x > 0, else 0        (NaN stays NaN)
    gx = gy  where y != 0, else 0       (the derivative at 0 is taken as 0)

Source: Nair, Hinton, "Rectified linear units improve restricted Boltzmann machines", ICML 2010.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tinygraph.base import frozen
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import NUMBERS
from tinygraph.ops.elementwise.unary import Unary, number_unary

WORTH_CLIP = 4096  # elements, from which on np.clip, a longer call, is faster than np.maximum


@frozen
class Relu(Unary, Op):
    takes: ClassVar[str] = NUMBERS
    keeps: ClassVar[str] = "y"

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        if x.dtype.kind == "f" and x.size >= WORTH_CLIP:
            np.clip(x, 0, np.inf, out=y)  # takes numbers in a third of the time of np.maximum
        else:
            np.maximum(x, 0, out=y)  # NaN propagates, in both
        y += 0  # -0 becomes 0

    def gradient(self, mem: Memory, gy: Array, y: Array, gx: Array) -> None:
        passes = np.not_equal(y, 0, out=mem.empty(y.shape, bool))
        np.multiply(gy, passes, out=gx)


@number_unary
def relu(x: Operand) -> Tensor:
    """Rectified linear unit, `where(x <= 0, 0, x)`, element by element.

    Returns
    -------
    Tensor
        ... NaN propagates, -inf gives 0, and -0 gives 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.relu(tg.Tensor([-1.0, 0.0, 2.0])).value
    array([0., 0., 2.], dtype=float32)
    """
    return Relu()(x)
