"""Group and instance normalization: groups of a sample's channels brought to mean 0, variance 1.

    x (N, C, D...), G groups of C / G neighbouring channels; weight and bias (C)

    y = weight * z + bias,  z = layer_norm of x as (N, G, C / G * D...) over the last axis

Instance normalization has a group for each channel.  Nothing depends on other samples.

Source: Wu, He, "Group normalization", ECCV 2018; Ulyanov, Vedaldi, Lempitsky, "Instance
normalization: the missing ingredient for fast stylization", arXiv:1607.08022.
"""

from __future__ import annotations

import math

from tinygraph.base import ArgumentError, ShapeError, whole
from tinygraph.engine import Operand, Tensor, as_tensor
from tinygraph.ops.common import device_of, documented
from tinygraph.ops.elementwise.arithmetic import add, mul
from tinygraph.ops.normalization.layer_norm import layer_norm
from tinygraph.ops.shaping.reshape import reshape


def _normalized(op: str, x: Tensor, groups: int, eps: float, *parameters: Operand | None) -> Tensor:
    """x with each group of channels normalized, times weight, plus bias."""
    n, channels, *rest = x.shape
    shape = (1, channels, *(1 for _ in rest))
    given = [None if p is None else as_tensor(p, device=device_of(x)) for p in parameters]
    for name, parameter in zip(("weight", "bias"), given, strict=True):
        if parameter is not None and parameter.shape != (channels,):
            expected = f"shape ({channels},), a number for each channel of x"
            raise ShapeError(op, name, expected, parameter.shape)
    size = channels // groups * math.prod(rest)
    if not size:
        raise ShapeError(op, "x", "at least one number in each group", x.shape)
    y = reshape(layer_norm(reshape(x, (n, groups, size)), size, eps=eps), x.shape)
    for join, parameter in zip((mul, add), given, strict=True):
        if parameter is not None:
            y = join(y, reshape(parameter, shape))
    return y


_of_channels = documented(
    """
    Parameters
    ----------
    weight, bias : Tensor (C), optional
        Scale and shift of each channel; 1 and 0 where they are not given.
    eps : float
        Added to the variance, which is the biased one.

    Returns
    -------
    Tensor
        Same shape and dtype as `x`; the same in training and evaluation.

    Raises
    ------
    DtypeError
        `x` is not float32 or float64.
    """
)


@_of_channels
def group_norm(
    x: Operand,
    num_groups: int,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Bring each group of a sample's channels to mean 0 and variance 1, then scale and shift.

    Parameters
    ----------
    x : Tensor (N, C, D...)
        float32 or float64.
    num_groups : int
        Groups of neighbouring channels; a divisor of C.

    Raises
    ------
    ShapeError
        `x` has no axis of channels or no number in a group, or `weight` or `bias` is not (C).
    ArgumentError
        `num_groups` is no divisor of C, or eps is negative.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.group_norm([[1.0, 3.0, 5.0, 5.0]], 2, eps=0.01).value.round(2)
    array([[-1.,  1.,  0.,  0.]], dtype=float32)
    """
    x = as_tensor(x, device=device_of(x, weight, bias))
    if x.ndim < 2:
        raise ShapeError("group_norm", "x", "(N, C) or (N, C, D...)", x.shape)
    groups = whole("group_norm", "num_groups", num_groups)
    if x.shape[1] % groups:
        expected = f"a divisor of the {x.shape[1]} channels"
        raise ArgumentError("group_norm", "num_groups", expected, groups)
    return _normalized("group_norm", x, groups, eps, weight, bias)


@_of_channels
def instance_norm(
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Bring each channel of each sample to mean 0 and variance 1, then scale and shift.

    Parameters
    ----------
    x : Tensor (N, C, D...)
        At least one axis behind the channels; float32 or float64.

    Raises
    ------
    ShapeError
        `x` has fewer than three axes or no number in a channel, or `weight` or `bias` is not (C).
    ArgumentError
        eps is negative.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.instance_norm([[[1.0, 3.0], [5.0, 5.0]]], eps=0.01).value.round(2)
    array([[[-1.,  1.],
            [ 0.,  0.]]], dtype=float32)
    """
    x = as_tensor(x, device=device_of(x, weight, bias))
    if x.ndim < 3 or not x.shape[1]:
        raise ShapeError("instance_norm", "x", "(N, C, D...) with at least one channel", x.shape)
    return _normalized("instance_norm", x, x.shape[1], eps, weight, bias)
