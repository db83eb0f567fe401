"""Heaviside's step function: the activation of the perceptron.

    y  = 0 where x < 0, v where x = 0, 1 where x > 0        v is the value at 0
    gx = 0

The derivative is 0 wherever there is one, so nothing below a step learns by gradients.  A
perceptron learns by a rule of its own: w += (label - y) * learning rate * x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import frozen, number
from tinygraph.engine import Array, Memory, Op, Operand, Tensor
from tinygraph.ops.common import rounded
from tinygraph.ops.elementwise.unary import Flat, unary


@frozen
class Heaviside(Flat, Op):
    value: float = 1.0

    def function(self, mem: Memory, x: Array, y: Array) -> None:
        np.heaviside(x, self.value, out=y)

    def numbers(self, dtype: np.dtype[Any]) -> tuple[float, ...]:
        return (rounded(self.value, dtype),)


@unary
def heaviside(x: Operand, value: float = 1.0) -> Tensor:
    """The step function, element by element: 0 below 0, 1 above, `value` at 0.

    Its gradient is zero everywhere, also at the step, where there is no derivative.

    Parameters
    ----------
    value : float
        The result at 0.

    Returns
    -------
    Tensor
        ... NaN propagates.

    Raises
    ------
    ArgumentError
        `value` is not a finite number.

    References
    ----------
    Rosenblatt, "The perceptron: a probabilistic model for information storage and organization
    in the brain", Psychological Review 65, 1958.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.heaviside([-2.0, 0.0, 3.0]).value
    array([0., 1., 1.], dtype=float32)
    """
    return Heaviside(number("heaviside", "value", value))(x)
