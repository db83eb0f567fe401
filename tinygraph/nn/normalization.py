"""Normalization of each sample by itself; batch_norm.py has that over the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, number, whole
from tinygraph.engine import Operand, Parameter, Tensor
from tinygraph.nn.inputs import as_input
from tinygraph.nn.module import Module
from tinygraph.ops.normalization.group_norm import group_norm, instance_norm
from tinygraph.ops.normalization.layer_norm import layer_norm
from tinygraph.ops.normalization.rms_norm import rms_norm


class LayerNorm(Module):
    """Normalization of the last axes of each sample: see `tg.layer_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the last axes.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there is a scale for each feature.
    bias : bool
        Whether there is a shift too.
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight, bias : Parameter or None
        Of the shape `normalized_shape`; 1 and 0 at first.

    References
    ----------
    Ba, Kiros, Hinton, "Layer normalization", arXiv:1607.06450.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.LayerNorm(2)(tg.Tensor([[1.0, 3.0]])).value.round(3)
    array([[-1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = np.float32,
    ) -> None:
        shape = self.normalized_shape = _sizes("LayerNorm", normalized_shape)
        self.eps = number("LayerNorm", "eps", eps, 0)
        affine = bool(elementwise_affine)
        self.weight = Parameter(np.ones(shape, dtype), name="weight") if affine else None
        self.bias = Parameter(np.zeros(shape, dtype), name="bias") if affine and bias else None

    def forward(self, x: Operand) -> Tensor:
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        text = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"
        return f"{text}, bias=False" if affine and self.bias is None else text


def _sizes(layer: str, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    several = isinstance(normalized_shape, (tuple, list))
    sizes = tuple(normalized_shape) if several else (normalized_shape,)  # type: ignore[arg-type]
    if not sizes:
        raise ArgumentError(layer, "normalized_shape", "a size or several", "()")
    return tuple([whole(layer, "normalized_shape", n) for n in sizes])


class RMSNorm(Module):
    """Division of each sample by the root mean square of its last axes: see `tg.rms_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the last axes.
    eps : float, optional
        Added to the mean of squares.
    elementwise_affine : bool
        Whether there is a scale for each feature.
    dtype : dtype
        Of the parameter; the input must have it too.

    Attributes
    ----------
    weight : Parameter or None
        Of the shape `normalized_shape`; 1 at first.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.RMSNorm(2)(tg.Tensor([[3.0, 4.0]])).value.round(2)
    array([[0.85, 1.13]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = np.float32,
    ) -> None:
        shape = self.normalized_shape = _sizes("RMSNorm", normalized_shape)
        self.eps = None if eps is None else number("RMSNorm", "eps", eps, 0)
        weight = Parameter(np.ones(shape, dtype), name="weight") if elementwise_affine else None
        self.weight = weight

    def forward(self, x: Operand) -> Tensor:
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={affine}"


class GroupNorm(Module):
    """Normalization of groups of a sample's channels: see `tg.group_norm`.

    Parameters
    ----------
    num_groups : int
        A divisor of num_channels.
    num_channels : int
    eps : float
        Added to the variance.
    affine : bool
        Whether there is a scale for each channel.
    bias : bool
        Whether there is a shift too.
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight, bias : Parameter (C,) or None
        1 and 0 at first.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.GroupNorm(2, 4)(tg.ones((1, 4, 3, 3))).shape
    (1, 4, 3, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.num_channels = whole("GroupNorm", "num_channels", num_channels)
        self.num_groups = whole("GroupNorm", "num_groups", num_groups)
        if self.num_channels % self.num_groups:
            expected = f"a divisor of num_channels, {num_channels}"
            raise ArgumentError("GroupNorm", "num_groups", expected, num_groups)
        self.eps = number("GroupNorm", "eps", eps, 0)
        ones = np.ones(self.num_channels, dtype)
        self.weight = Parameter(ones, name="weight") if affine else None
        self.bias = Parameter(0 * ones, name="bias") if affine and bias else None

    def forward(self, x: Operand) -> Tensor:
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        text = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={affine}"
        return f"{text}, bias=False" if affine and self.bias is None else text


class InstanceNorm(Module):
    """What InstanceNorm1d and InstanceNorm2d share; `axes` is the shape that they take."""

    axes: ClassVar[str]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        layer = type(self).__name__
        if track_running_stats:
            way_out = "each channel of each sample is normalised by itself, in training or not"
            raise ArgumentError(layer, "track_running_stats", "False", True, way_out)
        self.num_features = whole(layer, "num_features", num_features)
        self.eps = number(layer, "eps", eps, 0)
        ones = np.ones(self.num_features, dtype)
        self.weight = Parameter(ones, name="weight") if affine else None
        self.bias = Parameter(0 * ones, name="bias") if affine and bias else None

    def forward(self, x: Operand) -> Tensor:
        x = as_input(self, x)
        if x.ndim != self.axes.count(",") + 1 or x.shape[1] != self.num_features:
            expected = f"{self.axes} with {self.num_features} channels"
            raise ShapeError(type(self).__name__, "x", expected, f"shape {x.shape}")
        return instance_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        affine = self.weight is not None
        text = f"{self.num_features}, eps={self.eps}, affine={affine}"
        return f"{text}, bias=False" if affine and self.bias is None else text


class InstanceNorm1d(InstanceNorm):
    """Normalization of each channel of each sequence (N, C, L): see `tg.instance_norm`.

    Parameters
    ----------
    num_features : int
        C.
    eps : float
        Added to the variance.
    momentum : float
        Taken as PyTorch has it, and changes nothing without running statistics.
    affine : bool
        Whether there is a scale for each channel.
    track_running_stats : False
        There are no running statistics.
    bias : bool
        Whether there is a shift too.
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight, bias : Parameter (C,) or None
        1 and 0 at first.
    """

    axes: ClassVar[str] = "(N, C, L)"


class InstanceNorm2d(InstanceNorm):
    """Normalization of each channel of each image (N, C, H, W): see `tg.instance_norm`.

    Parameters and attributes are those of `InstanceNorm1d`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.InstanceNorm2d(3, affine=True)(tg.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    axes: ClassVar[str] = "(N, C, H, W)"
