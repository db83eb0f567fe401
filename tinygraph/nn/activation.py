"""Activation layers: a function applied to every element, or along one axis."""

from __future__ import annotations

from tinygraph.nn.module import Module
from tinygraph.ops import log_softmax, relu, sigmoid, softmax, tanh
from tinygraph.tensor import Operand, Tensor


class ReLU(Module):
    """Rectified linear unit: see `tg.relu`."""

    def forward(self, x: Operand) -> Tensor:
        return relu(x)


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

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Operand) -> Tensor:
        return softmax(x, self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(Softmax):
    """Logarithm of softmax along an axis: see `tg.log_softmax`."""

    def forward(self, x: Operand) -> Tensor:
        return log_softmax(x, self.axis)
