"""Convolutional layers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.checks import whole
from tinygraph.errors import ArgumentError
from tinygraph.nn.covered import require_covered
from tinygraph.nn.init import default_affine_
from tinygraph.nn.module import Module
from tinygraph.ops.conv2d import conv2d
from tinygraph.parameter import Parameter
from tinygraph.shapes import Pair, padding_2d, pair
from tinygraph.tensor import Operand, Tensor, as_tensor


class Conv2d(Module):
    """Two-dimensional convolution of images (N, C, H, W): see `tg.conv2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        C and O; `groups` divides both.
    kernel_size, stride, dilation : int or (vertical, horizontal)
    padding : int, (vertical, horizontal) or "same"
    groups : int
    bias : bool
    strict : bool
        Refuse an image of which the windows leave out pixels at the bottom or right.
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight : Parameter (O, C/groups, KH, KW)
        Uniform on +-1 / sqrt(C/groups * KH * KW) at first.
    bias : Parameter (O,) or None
        Likewise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.Conv2d(1, 8, 3, padding=1)
    >>> layer
    Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(tg.ones((2, 1, 28, 28))).shape
    (2, 8, 28, 28)
    """

    _settings: ClassVar[tuple[str, ...]] = ("kernel_size", "stride")
    _unusual: ClassVar[dict[str, Any]] = {
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "strict": False,
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        strict: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.in_channels = whole("Conv2d", "in_channels", in_channels)
        self.out_channels = whole("Conv2d", "out_channels", out_channels)
        self.groups = whole("Conv2d", "groups", groups)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ArgumentError(
                "Conv2d",
                "groups",
                "a divisor of in_channels and of out_channels",
                f"{groups} for {in_channels} and {out_channels}",
            )
        self.kernel_size = pair("Conv2d", "kernel_size", kernel_size)
        self.stride = pair("Conv2d", "stride", stride)
        self.padding = padding_2d("Conv2d", padding)
        self.dilation = pair("Conv2d", "dilation", dilation)
        self.strict = bool(strict)
        shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        self.weight = Parameter(np.empty(shape, dtype), name="weight")
        self.bias = Parameter(np.empty(shape[:1], dtype), name="bias") if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        default_affine_(self.weight, self.bias)

    def forward(self, x: Operand) -> Tensor:
        x = as_tensor(x)
        if self.strict:
            require_covered(
                "Conv2d", x.shape, self.kernel_size, self.stride, self.padding, self.dilation
            )
        return conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, {super().extra_repr()}"
        return text if self.bias is not None else f"{text}, bias=False"
