"""Leaky ReLU: a small slope below 0 instead of none.

    y  = max(x, 0) + s * min(x, 0)              s is the negative slope
    gx = gy where x > 0, else s * gy            (the derivative at 0 is taken as s)

Source: Maas, Hannun, Ng, "Rectifier nonlinearities improve neural network acoustic models", ICML
2013 workshop on deep learning for audio, speech and language processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.hyperparameters import finite
from tinygraph.ops.shared.launch import for_each
from tinygraph.shapes import Array, Spec, require_float
from tinygraph.tensor import Operand, Tensor


def one_above_zero(mem: Memory, x: Array, otherwise: float) -> Array:
    """1 where x > 0, else the given number: three exact sums, faster in numpy than a selection."""
    above = np.greater(x, 0, out=mem.empty(x.shape, bool))
    factor = np.multiply(above, -otherwise, out=mem.empty(x.shape, x.dtype))
    factor += otherwise
    factor += above
    return factor


@frozen
class LeakyRelu(Op):
    negative_slope: float = 0.01

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        return x

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = np.minimum(x, 0, out=mem.empty(x.shape, x.dtype))
        y *= self.negative_slope
        y += np.maximum(x, 0, out=mem.empty(x.shape, x.dtype))
        return y, x if mem.needs[0] else None

    def backward(self, mem: Memory, gy: Array, x: Array, needs: tuple[bool, ...]) -> Gradients:
        gx = one_above_zero(mem, x, self.negative_slope)
        gx *= gy
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty(x.shape, x.dtype)
        kernel = op_kernel("leaky_relu", "leaky_relu_forward", x.dtype)
        for_each(kernel, x.size, x, y, x.size, self.negative_slope)
        return y, x if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, x: Array, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(x.shape, x.dtype)
        kernel = op_kernel("leaky_relu", "leaky_relu_backward", x.dtype)
        for_each(kernel, x.size, gy, x, gx, x.size, self.negative_slope)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def leaky_relu(x: Operand, negative_slope: float = 0.01) -> Tensor:
    """Leaky rectified linear unit, `where(x > 0, x, negative_slope * x)`, element by element.

    Parameters
    ----------
    x : Tensor
        Any shape; float32 or float64.
    negative_slope : float
        The slope below 0, and the derivative at 0.

    Returns
    -------
    Tensor
        Same shape and dtype.  NaN propagates.

    Raises
    ------
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        `negative_slope` is not a finite number.

    References
    ----------
    Maas, Hannun, Ng, "Rectifier nonlinearities improve neural network acoustic models", ICML 2013
    workshop on deep learning for audio, speech and language processing.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.leaky_relu([-2.0, 0.0, 3.0], negative_slope=0.5).value
    array([-1.,  0.,  3.], dtype=float32)
    """
    return LeakyRelu(finite("leaky_relu", "negative_slope", negative_slope))(x)
