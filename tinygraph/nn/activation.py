"""Activation layers: a function applied to every element, or along one axis."""

from __future__ import annotations

from typing import Any, ClassVar

from tinygraph.checks import number, one_of
from tinygraph.nn.module import Module
from tinygraph.ops.elu import elu
from tinygraph.ops.gelu import gelu
from tinygraph.ops.leaky_relu import leaky_relu
from tinygraph.ops.relu import relu
from tinygraph.ops.shared.spelling import spelled
from tinygraph.ops.sigmoid import sigmoid
from tinygraph.ops.softmax import log_softmax, softmax
from tinygraph.ops.softplus import softplus
from tinygraph.ops.tanh import tanh
from tinygraph.tensor import Operand, Tensor


class Identity(Module):
    """What it is given: a place for a layer that may be absent."""

    def forward(self, x: Any) -> Any:
        return x


class ReLU(Module):
    """Rectified linear unit: see `tg.relu`.  `inplace` is taken, and changes nothing."""

    def __init__(self, inplace: bool = False) -> None:
        pass

    def forward(self, x: Operand) -> Tensor:
        return relu(x)


class LeakyReLU(Module):
    """Rectified linear unit with a slope below 0: see `tg.leaky_relu`.

    `inplace` is taken, and changes nothing.
    """

    _settings: ClassVar[tuple[str, ...]] = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = number("LeakyReLU", "negative_slope", negative_slope)

    def forward(self, x: Operand) -> Tensor:
        return leaky_relu(x, self.negative_slope)


class ELU(Module):
    """Exponential linear unit: see `tg.elu`.  `inplace` is taken, and changes nothing."""

    _settings: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = number("ELU", "alpha", alpha)

    def forward(self, x: Operand) -> Tensor:
        return elu(x, self.alpha)


class GELU(Module):
    """Gaussian error linear unit: see `tg.gelu`.

    Parameters
    ----------
    approximate : {"none", "tanh"}
    """

    _settings: ClassVar[tuple[str, ...]] = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = one_of("GELU", "approximate", approximate, ("none", "tanh"))

    def forward(self, x: Operand) -> Tensor:
        return gelu(x, self.approximate)


class Softplus(Module):
    """A ReLU without a kink: see `tg.softplus`.

    Parameters
    ----------
    beta : float
        Sharpness of the bend, above 0.
    threshold : float
        Where beta * x is above it, the output is x.
    """

    _settings: ClassVar[tuple[str, ...]] = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = number("Softplus", "beta", beta, above=0)
        self.threshold = number("Softplus", "threshold", threshold, 0)

    def forward(self, x: Operand) -> Tensor:
        return softplus(x, self.beta, self.threshold)


class Sigmoid(Module):
    """Logistic function: see `tg.sigmoid`."""

    def forward(self, x: Operand) -> Tensor:
        return sigmoid(x)


class Tanh(Module):
    """Hyperbolic tangent: see `tg.tanh`."""

    def forward(self, x: Operand) -> Tensor:
        return tanh(x)


class Softmax(Module):
    """Exponentials that sum to one along an axis: see `tg.softmax`."""

    _settings: ClassVar[tuple[str, ...]] = ("axis",)

    @spelled  # as `dim` too
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Operand) -> Tensor:
        return softmax(x, self.axis)


class LogSoftmax(Softmax):
    """Logarithm of softmax along an axis: see `tg.log_softmax`."""

    def forward(self, x: Operand) -> Tensor:
        return log_softmax(x, self.axis)
