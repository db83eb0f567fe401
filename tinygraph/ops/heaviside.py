"""Heaviside's step function: the activation of the perceptron.

    y  = 0 where x < 0, v where x = 0, 1 where x > 0        v is the value at 0
    gx = 0

The derivative is 0 wherever there is one, so nothing below a step learns by gradients.  A
perceptron learns by a rule of its own: w += (label - y) * learning rate * x.

Source: Rosenblatt, "The perceptron: a probabilistic model for information storage and organization
in the brain", Psychological Review 65, 1958.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.broadcast import rounded
from tinygraph.ops.shared.hyperparameters import finite
from tinygraph.ops.shared.launch import for_each
from tinygraph.shapes import Array, Spec, require_float
from tinygraph.tensor import Operand, Tensor


@frozen
class Heaviside(Op):
    value: float = 1.0

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return np.heaviside(x, self.value, out=mem.empty(x.shape, x.dtype)), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        return (mem.zeros(gy.shape, gy.dtype),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        kernel = op_kernel("heaviside", "heaviside_forward", x.dtype)
        for_each(kernel, x.size, x, y, x.size, rounded(self.value, x.dtype))
        return y, None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        return (mem.zeros(gy.shape, gy.dtype),)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def heaviside(x: Operand, value: float = 1.0) -> Tensor:
    """The step function, element by element: 0 below 0, 1 above, `value` at 0.

    Its gradient is zero everywhere, also at the step, where there is no derivative.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    value : float
        The result at 0.

    Returns
    -------
    Tensor
        Same shape and dtype.  NaN propagates.

    Raises
    ------
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        `value` is not a finite number.

    References
    ----------
    Rosenblatt, "The perceptron: a probabilistic model for information storage and organization in
    the brain", Psychological Review 65, 1958.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.heaviside([-2.0, 0.0, 3.0]).value
    array([0., 1., 1.], dtype=float32)
    """
    return Heaviside(finite("heaviside", "value", value))(x)
