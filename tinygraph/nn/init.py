"""Initialisers: they overwrite a parameter's value in place, with PyTorch's names and defaults.

    fan_in    how many inputs one output sums over: I for (O, I), C/groups * KH * KW for filters
    fan_out   how many outputs one input feeds: O, or O * KH * KW for filters
    gain      the factor by which a nonlinearity would shrink the standard deviation

    Glorot and Bengio keep the variance of activations and gradients from layer to layer:
        std = gain * sqrt(2 / (fan_in + fan_out))
    He et al. correct this for rectifiers, which drop half of it:
        std = gain / sqrt(fan_in),   gain = sqrt(2 / (1 + a**2)) with a the negative slope

A uniform distribution on [-bound, bound) has the standard deviation bound / sqrt(3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tinygraph.base import ArgumentError, DeviceError, DtypeError, ShapeError, too_large, unmasked
from tinygraph.base.checks import number, one_of
from tinygraph.base.lazy import lazy
from tinygraph.engine import Array, Generator, Tensor, default_generator, uniform
from tinygraph.engine.writes import refuse_read_only

T = TypeVar("T", bound=Tensor)

_GAINS = {
    "linear": 1.0,
    "conv2d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "leaky_relu": None,
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain of a nonlinearity, by PyTorch's table; `param` is leaky_relu's negative slope.

    >>> calculate_gain("leaky_relu", 1.0)
    1.0
    """
    gain = _GAINS[one_of("init", "nonlinearity", nonlinearity, _GAINS)]
    if gain is None:
        slope = 0.01 if param is None else number("calculate_gain", "param", param)
        return math.sqrt(2 / (1 + slope**2))
    return gain


def uniform_(tensor: T, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> T:
    """Uniform numbers in [a, b).

    Parameters
    ----------
    tensor : Parameter
        float32 or float64; its array is overwritten.
    a, b : float
        The bounds.
    generator : tinygraph.engine.random.Generator, optional
        The one that `manual_seed` seeds where it is not given.

    Returns
    -------
    Parameter
        `tensor` itself.

    Examples
    --------
    >>> from tinygraph import nn
    >>> w = nn.init.uniform_(nn.Parameter([0.0, 0.0]), 2.0, 3.0)
    >>> bool(((2 <= w.value) & (w.value < 3)).all())
    True
    """
    low = number("uniform_", "a", a)
    high = number("uniform_", "b", b, low)
    source = _check("uniform_", tensor, generator)
    numbers = uniform(tensor.shape, np.float64, source.seed, source.next_stream())
    return _write(tensor, low + (high - low) * numbers)


def normal_(
    tensor: T, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> T:
    """Normally distributed numbers; see `uniform_` for the arguments and what is returned."""
    centre, spread = number("normal_", "mean", mean), number("normal_", "std", std, 0)
    source = _check("normal_", tensor, generator)
    return _write(tensor, centre + spread * source.numpy().standard_normal(tensor.shape))


def constant_(tensor: T, val: float) -> T:
    """One number everywhere."""
    _check("constant_", tensor, None)
    return _write(
        tensor, np.broadcast_to(np.float64(unmasked("constant_", "val", val)), tensor.shape)
    )


def zeros_(tensor: T) -> T:
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: T) -> T:
    """Ones."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Uniform on +-gain * sqrt(6 / (fan_in + fan_out)).

    References
    ----------
    Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010, equation 16.
    """
    bound = math.sqrt(3.0) * _xavier_std("xavier_uniform_", tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Normal with std gain * sqrt(2 / (fan_in + fan_out)).

    References
    ----------
    Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    AISTATS 2010, equation 12.
    """
    return normal_(tensor, 0.0, _xavier_std("xavier_normal_", tensor, gain), generator)


def kaiming_uniform_(
    tensor: T,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> T:
    """Uniform on +-gain * sqrt(3 / fan).

    Parameters
    ----------
    tensor : Parameter
        At least two axes: (O, I) or (O, C/groups, KH, KW).
    a : float
        The negative slope of the rectifier that follows; only for "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Keep the variance of the forward or of the backward pass.
    nonlinearity : str
        What follows: "leaky_relu", "relu", "linear", "tanh", ...
    generator : tinygraph.engine.random.Generator, optional

    Returns
    -------
    Parameter
        `tensor` itself.

    Raises
    ------
    ArgumentError
        An unknown mode or nonlinearity.
    ShapeError
        Fewer than two axes: a bias has no fan.

    References
    ----------
    He, Zhang, Ren, Sun, "Delving deep into rectifiers", ICCV 2015, equations 10 and 14.
    """
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: T,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> T:
    """Normal with std gain / sqrt(fan); see `kaiming_uniform_` for the arguments.

    References
    ----------
    He, Zhang, Ren, Sun, "Delving deep into rectifiers", ICCV 2015, equations 10 and 14.
    """
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def default_affine_(
    weight: Tensor, bias: Tensor | None, generator: Generator | None = None
) -> None:
    """What PyTorch does for its linear and convolutional layers: +-1 / sqrt(fan_in) for both.

    The weights come from `kaiming_uniform_` with a = sqrt(5), which amounts to the same bound.
    """
    kaiming_uniform_(weight, math.sqrt(5.0), generator=generator)
    if bias is not None:
        bound = 1 / math.sqrt(fans("init", weight)[0])
        uniform_(bias, -bound, bound, generator)


def fans(op: str, tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (O, I, ...), where further axes are a kernel's."""
    _check(op, tensor, None)
    if tensor.ndim < 2 or not tensor.size:
        raise ShapeError(
            op,
            "tensor",
            "a weight (O, I, ...) with at least two axes and one element",
            f"shape {tensor.shape}",
            "use uniform_, normal_ or constant_ for a bias",
        )
    kernel = math.prod(tensor.shape[2:])
    return tensor.shape[1] * kernel, tensor.shape[0] * kernel


def _xavier_std(op: str, tensor: Tensor, gain: float) -> float:
    return number(op, "gain", gain) * math.sqrt(2.0 / sum(fans(op, tensor)))


def _kaiming_std(op: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    modes = ("fan_in", "fan_out")
    fan = fans(op, tensor)[modes.index(one_of(op, "mode", mode, modes))]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _check(op: str, tensor: Any, generator: Generator | None) -> Generator:
    """The generator to use, once the tensor is known to be one of floats."""
    if not isinstance(tensor, Tensor) or not tensor.is_leaf:
        raise ArgumentError(
            op,
            "tensor",
            "a Parameter, or another leaf",
            type(tensor).__name__,
            "an initialiser overwrites tensor.value in place",
        )
    if tensor.dtype.kind != "f":
        raise DtypeError(op, "tensor", "a float dtype", tensor.dtype)
    if tensor.device.on_host and (why := too_large(3 * tensor.size * tensor.dtype.itemsize)):
        got = f"{tensor.shape}, which takes {why}"  # with the random words it is made of
        raise DeviceError(op, "tensor", "a size that there is memory for", got, "a smaller layer")
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentError(
            op,
            "generator",
            "a tinygraph.engine.random.Generator",
            type(generator).__name__,
            "tg.Generator(seed=1)",
        )
    return default_generator if generator is None else generator


def _write(tensor: T, numbers: Array) -> T:
    refuse_read_only(tensor)
    tensor.value[...] = tensor.device.from_numpy(numbers.astype(tensor.dtype))
    return tensor


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, {}, "nn.init")
