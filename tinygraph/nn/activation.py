"""Activation layers: a function applied to every element, or along one axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import number, whole
from tinygraph.engine import Operand, Parameter, Tensor
from tinygraph.nn.module import Module
from tinygraph.nn.settings import Function, layer, setting
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


@layer()
class InPlace(Function):
    inplace: InitVar[bool] = False


@layer(relu)
class ReLU(InPlace):
    """Rectified linear unit: see `tg.relu`.  `inplace` is taken, and changes nothing."""


@layer(relu6)
class ReLU6(InPlace):
    """Rectified linear unit that stops at 6: see `tg.relu6`.

    `inplace` is taken, and changes nothing.
    """


@layer(leaky_relu)
class LeakyReLU(Function):
    """Rectified linear unit with a slope below 0: see `tg.leaky_relu`.

    `inplace` is taken, and changes nothing.
    """

    negative_slope: float = 0.01
    inplace: InitVar[bool] = False


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


@layer(elu)
class ELU(Function):
    """Exponential linear unit: see `tg.elu`.  `inplace` is taken, and changes nothing."""

    alpha: float = 1.0
    inplace: InitVar[bool] = False


@layer(selu)
class SELU(InPlace):
    """ELU by which layers keep mean 0 and variance 1: see `tg.selu`.

    `inplace` is taken, and changes nothing.
    """


@layer(celu)
class CELU(Function):
    """Exponential linear unit without a kink: see `tg.celu`.

    `inplace` is taken, and changes nothing.
    """

    alpha: float = setting(default=1.0, above=0)
    inplace: InitVar[bool] = False


@layer(gelu)
class GELU(Function):
    """Gaussian error linear unit: see `tg.gelu`.

    Parameters
    ----------
    approximate : {"none", "tanh"}
    """

    approximate: str = setting(default="none", words=("none", "tanh"))


@layer(silu)
class SiLU(InPlace):
    """Sigmoid linear unit, also called swish: see `tg.silu`.

    `inplace` is taken, and changes nothing.
    """


@layer(mish)
class Mish(InPlace):
    """x times the hyperbolic tangent of its softplus: see `tg.mish`.

    `inplace` is taken, and changes nothing.
    """


@layer(softplus)
class Softplus(Function):
    """A ReLU without a kink: see `tg.softplus`.

    Parameters
    ----------
    beta : float
        Sharpness of the bend, above 0.
    threshold : float
        Where beta * x is above it, the output is x.
    """

    beta: float = setting(default=1.0, above=0)
    threshold: float = setting(default=20.0, least=0)


@layer(softsign)
class Softsign(Function):
    """x over 1 + its absolute value: see `tg.softsign`."""


@layer(sigmoid)
class Sigmoid(Function):
    """Logistic function: see `tg.sigmoid`."""


@layer(logsigmoid)
class LogSigmoid(Function):
    """Logarithm of the logistic function: see `tg.logsigmoid`."""


@layer(tanh)
class Tanh(Function):
    """Hyperbolic tangent: see `tg.tanh`."""


@layer(hardtanh)
class Hardtanh(Function):
    """x brought into an interval: see `tg.hardtanh`.

    Parameters
    ----------
    min_val, max_val : float
        The bounds of the interval.
    inplace : bool
        Changes nothing.
    """

    min_val: float = -1.0
    max_val: float = setting(default=1.0, above="min_val")
    inplace: InitVar[bool] = False


@layer(hardsigmoid)
class Hardsigmoid(InPlace):
    """Sigmoid of three straight pieces: see `tg.hardsigmoid`.

    `inplace` is taken, and changes nothing.
    """


@layer(hardswish)
class Hardswish(InPlace):
    """SiLU with a gate of straight pieces: see `tg.hardswish`.

    `inplace` is taken, and changes nothing.
    """


class AlongAxis(Module):
    function: ClassVar[Callable[..., Tensor]]
    _settings: ClassVar[tuple[str, ...]] = ("axis",)

    @spelled  # as `dim` too
    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Operand) -> Tensor:
        return type(self).function(x, self.axis)


class Softmax(AlongAxis):
    """Exponentials that sum to one along an axis: see `tg.softmax`."""

    function = staticmethod(softmax)


class LogSoftmax(AlongAxis):
    """Logarithm of softmax along an axis: see `tg.log_softmax`."""

    function = staticmethod(log_softmax)


class GLU(AlongAxis):
    """One half along an axis, gated by the other half: see `tg.glu`."""

    function = staticmethod(glu)
