"""Activation layers: a function applied to every element, or along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import number, one_of, whole
from tinygraph.engine import Operand, Parameter, Tensor
from tinygraph.nn.module import Module
from tinygraph.ops.common.spelling import spelled
from tinygraph.ops.elementwise.elu import celu, elu, selu
from tinygraph.ops.elementwise.gelu import gelu
from tinygraph.ops.elementwise.glu import glu
from tinygraph.ops.elementwise.hard_activations import hardsigmoid, hardswish, hardtanh, relu6
from tinygraph.ops.elementwise.leaky_relu import leaky_relu
from tinygraph.ops.elementwise.prelu import prelu
from tinygraph.ops.elementwise.relu import relu
from tinygraph.ops.elementwise.sigmoid import sigmoid
from tinygraph.ops.elementwise.smooth_activations import logsigmoid, mish, silu, softsign
from tinygraph.ops.elementwise.softplus import softplus
from tinygraph.ops.elementwise.tanh import tanh
from tinygraph.ops.reductions.softmax import log_softmax, softmax


class Identity(Module):
    """What it is given: a place for a layer that may be absent."""

    def forward(self, x: Any) -> Any:
        return x


class Function(Module):
    """A function of one array, whose further arguments are the settings of the layer."""

    function: ClassVar[Callable[..., Tensor]]

    def forward(self, x: Operand) -> Tensor:
        return type(self).function(x, *[getattr(self, name) for name in self._settings])


class InPlace(Function):
    def __init__(self, inplace: bool = False) -> None:
        pass


class ReLU(InPlace):
    """Rectified linear unit: see `tg.relu`.  `inplace` is taken, and changes nothing."""

    function = staticmethod(relu)


class ReLU6(InPlace):
    """Rectified linear unit that stops at 6: see `tg.relu6`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(relu6)


class LeakyReLU(Function):
    """Rectified linear unit with a slope below 0: see `tg.leaky_relu`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(leaky_relu)
    _settings: ClassVar[tuple[str, ...]] = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = number("LeakyReLU", "negative_slope", negative_slope)


class PReLU(Module):
    """Rectified linear unit whose slope below 0 is learned: see `tg.prelu`.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels, each of which has a slope.
    init : float
        The slope at first.
    dtype : dtype
        Of the slopes; the input must have it too.

    Attributes
    ----------
    weight : Parameter (num_parameters,)
    """

    _settings: ClassVar[tuple[str, ...]] = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = np.float32
    ) -> None:
        self.num_parameters = whole("PReLU", "num_parameters", num_parameters)
        slopes = np.full(self.num_parameters, number("PReLU", "init", init), dtype)
        self.weight = Parameter(slopes, name="weight")

    def forward(self, x: Operand) -> Tensor:
        return prelu(x, self.weight)


class ELU(Function):
    """Exponential linear unit: see `tg.elu`.  `inplace` is taken, and changes nothing."""

    function = staticmethod(elu)
    _settings: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = number("ELU", "alpha", alpha)


class SELU(InPlace):
    """ELU by which layers keep mean 0 and variance 1: see `tg.selu`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(selu)


class CELU(Function):
    """Exponential linear unit without a kink: see `tg.celu`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(celu)
    _settings: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = number("CELU", "alpha", alpha, above=0)


class GELU(Function):
    """Gaussian error linear unit: see `tg.gelu`.

    Parameters
    ----------
    approximate : {"none", "tanh"}
    """

    function = staticmethod(gelu)
    _settings: ClassVar[tuple[str, ...]] = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = one_of("GELU", "approximate", approximate, ("none", "tanh"))


class SiLU(InPlace):
    """Sigmoid linear unit, also called swish: see `tg.silu`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(silu)


class Mish(InPlace):
    """x times the hyperbolic tangent of its softplus: see `tg.mish`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(mish)


class Softplus(Function):
    """A ReLU without a kink: see `tg.softplus`.

    Parameters
    ----------
    beta : float
        Sharpness of the bend, above 0.
    threshold : float
        Where beta * x is above it, the output is x.
    """

    function = staticmethod(softplus)
    _settings: ClassVar[tuple[str, ...]] = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta = number("Softplus", "beta", beta, above=0)
        self.threshold = number("Softplus", "threshold", threshold, 0)


class Softsign(Function):
    """x over 1 + its absolute value: see `tg.softsign`."""

    function = staticmethod(softsign)


class Sigmoid(Function):
    """Logistic function: see `tg.sigmoid`."""

    function = staticmethod(sigmoid)


class LogSigmoid(Function):
    """Logarithm of the logistic function: see `tg.logsigmoid`."""

    function = staticmethod(logsigmoid)


class Tanh(Function):
    """Hyperbolic tangent: see `tg.tanh`."""

    function = staticmethod(tanh)


class Hardtanh(Function):
    """x brought into an interval: see `tg.hardtanh`.

    Parameters
    ----------
    min_val, max_val : float
        The bounds of the interval.
    inplace : bool
        Changes nothing.
    """

    function = staticmethod(hardtanh)
    _settings: ClassVar[tuple[str, ...]] = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val = number("Hardtanh", "min_val", min_val)
        self.max_val = number("Hardtanh", "max_val", max_val, above=self.min_val)


class Hardsigmoid(InPlace):
    """Sigmoid of three straight pieces: see `tg.hardsigmoid`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(hardsigmoid)


class Hardswish(InPlace):
    """SiLU with a gate of straight pieces: see `tg.hardswish`.

    `inplace` is taken, and changes nothing.
    """

    function = staticmethod(hardswish)


class AlongAxis(Function):
    _settings: ClassVar[tuple[str, ...]] = ("axis",)

    @spelled  # as `dim` too
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class Softmax(AlongAxis):
    """Exponentials that sum to one along an axis: see `tg.softmax`."""

    function = staticmethod(softmax)


class LogSoftmax(AlongAxis):
    """Logarithm of softmax along an axis: see `tg.log_softmax`."""

    function = staticmethod(log_softmax)


class GLU(AlongAxis):
    """One half along an axis, gated by the other half: see `tg.glu`."""

    function = staticmethod(glu)
