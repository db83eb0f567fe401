"""Convolutional layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, one_of, whole
from tinygraph.engine import Operand, Pair, Parameter, Shape, Tensor, integers
from tinygraph.nn.covered import require_covered
from tinygraph.nn.init import default_affine_
from tinygraph.nn.inputs import as_input
from tinygraph.nn.module import Module
from tinygraph.ops.common import padding_2d, pair
from tinygraph.ops.shaping.pad import pad
from tinygraph.ops.windows.conv2d import conv1d, conv2d
from tinygraph.ops.windows.conv_transpose2d import conv_transpose1d, conv_transpose2d
from tinygraph.ops.windows.sequences import along
from tinygraph.ops.windows.sliding import windows

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(Module):
    """What convolutional layers share: filters, a bias, and how windows slide."""

    _settings: ClassVar[tuple[str, ...]] = ("kernel_size", "stride")
    axes: ClassVar[int] = 2  # that windows slide over
    transposed: ClassVar[bool] = (
        False  # weights (C, O/groups, ...) in the place of (O, C/groups, ...)
    )

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: Any = np.float32,
    ) -> None:
        layer = type(self).__name__
        self.in_channels = whole(layer, "in_channels", in_channels)
        self.out_channels = whole(layer, "out_channels", out_channels)
        self.groups = whole(layer, "groups", groups)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ArgumentError(
                layer,
                "groups",
                "a divisor of in_channels and of out_channels",
                f"{groups} for {in_channels} and {out_channels}",
            )
        self.kernel_size = self._each("kernel_size", kernel_size)
        self.stride = self._each("stride", stride)
        if padding == "valid" and not self.transposed:
            padding = 0
        word = isinstance(padding, str) and not self.transposed
        self.padding: Any = (
            padding_2d(layer, padding) if word else self._each("padding", padding, 0)
        )
        self.padding_mode = one_of(layer, "padding_mode", padding_mode, PADDING_MODES)
        self.dilation = self._each("dilation", dilation)
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        shape = (first, second // self.groups, *self.kernel_size)
        self.weight = Parameter(np.empty(shape, dtype), name="weight")
        biases = np.empty((self.out_channels,), dtype)
        self.bias = Parameter(biases, name="bias") if bias else None
        self.reset_parameters()

    def _each(self, argument: str, value: Any, minimum: int = 1) -> tuple[int, ...]:
        """A setting for each axis that windows slide over."""
        layer = type(self).__name__
        if self.axes == 1:
            return along(layer, argument, value, minimum, 0)[1:]
        return pair(layer, argument, value, minimum)

    def _bordered(self, x: Tensor) -> tuple[Tensor, Any]:
        """x, and the padding that is left for the op: none where x has been padded by its own."""
        if self.padding_mode == "zeros" or x.ndim != self.axes + 2:
            return x, self.padding
        widths = [(0, 0), (0, 0)]
        for i, size in enumerate(x.shape[2:]):
            each = self.padding if isinstance(self.padding, str) else self.padding[i]
            slides = self.kernel_size[i], self.stride[i], each, self.dilation[i]
            at = windows(type(self).__name__, size, *slides)
            widths.append((at.before, at.after if isinstance(each, str) else each))
        return pad(x, tuple(widths), mode=self.padding_mode), 0

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        default_affine_(self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, {super().extra_repr()}"
        return text if self.bias is not None else f"{text}, bias=False"


class Conv1d(Convolution):
    """Convolution of sequences (N, C, L): see `tg.conv1d`.

    Parameters
    ----------
    in_channels, out_channels : int
        C and O; `groups` divides both.
    kernel_size, stride, dilation : int
    padding : int, "same" or "valid"
    groups : int
    bias : bool
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding holds, see `tg.pad`.
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight : Parameter (O, C/groups, K)
        Uniform on +-1 / sqrt(C/groups * K) at first.
    bias : Parameter (O,) or None
        Likewise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.Conv1d(3, 8, 5, padding="same")(tg.ones((2, 3, 100))).shape
    (2, 8, 100)
    """

    _unusual: ClassVar[dict[str, Any]] = {
        "padding": (0,),
        "dilation": (1,),
        "groups": 1,
        "padding_mode": "zeros",
    }
    axes: ClassVar[int] = 1

    def forward(self, x: Operand) -> Tensor:
        x, padding = self._bordered(as_input(self, x))
        settings: Any = self.stride, padding, self.dilation, self.groups
        return conv1d(x, self.weight, self.bias, *settings)


class Conv2d(Convolution):
    """Two-dimensional convolution of images (N, C, H, W): see `tg.conv2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        C and O; `groups` divides both.
    kernel_size, stride, dilation : int or (vertical, horizontal)
    padding : int, (vertical, horizontal), "same" or "valid"
    groups : int
    bias : bool
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding holds, see `tg.pad`.
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

    _unusual: ClassVar[dict[str, Any]] = {
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "padding_mode": "zeros",
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
        padding_mode: str = "zeros",
        *,
        strict: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        settings = stride, padding, dilation, groups, bias, padding_mode
        super().__init__(in_channels, out_channels, kernel_size, *settings, dtype=dtype)
        self.strict = bool(strict)

    def forward(self, x: Operand) -> Tensor:
        x = as_input(self, x)
        if self.strict:
            slides: Any = self.kernel_size, self.stride, self.padding, self.dilation
            require_covered("Conv2d", x.shape, *slides)
        x, padding = self._bordered(x)
        settings: Any = self.stride, padding, self.dilation, self.groups
        return conv2d(x, self.weight, self.bias, *settings)


class TransposedConvolution(Convolution):
    """What the layers of transposed convolution share."""

    transposed: ClassVar[bool] = True
    function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        *,
        dtype: Any = np.float32,
    ) -> None:
        one_of(type(self).__name__, "padding_mode", padding_mode, ("zeros",))
        slides = stride, padding, dilation
        super().__init__(in_channels, out_channels, kernel_size, *slides, groups, bias, dtype=dtype)
        self.output_padding = self._each("output_padding", output_padding, 0)

    def forward(self, x: Operand, output_size: int | Sequence[int] | None = None) -> Tensor:
        x, extra = as_input(self, x), self.output_padding
        if output_size is not None:
            extra = self._extra(x.shape[-self.axes :], output_size)
        slides = self.stride, self.padding, extra, self.groups, self.dilation
        return type(self).function(x, self.weight, self.bias, *slides)

    def _extra(self, sizes: Shape, output_size: int | Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives an output of that size."""
        layer = type(self).__name__
        wanted = integers(layer, "output_size", output_size)[-self.axes :]
        settings = zip(
            sizes, self.stride, self.padding, self.dilation, self.kernel_size, strict=True
        )
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in settings]
        most = [low + s - 1 for low, s in zip(least, self.stride, strict=True)]
        fits = zip(least, wanted, most, strict=False)
        if len(wanted) != self.axes or not all(low <= n <= high for low, n, high in fits):
            expected = f"from {tuple(least)} to {tuple(most)}"
            raise ShapeError(layer, "output_size", expected, repr(output_size))
        return tuple([n - low for n, low in zip(wanted, least, strict=True)])


class ConvTranspose2d(TransposedConvolution):
    """Transposed convolution of images (N, C, H, W): see `tg.conv_transpose2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        C and O; `groups` divides both.
    kernel_size, stride, padding, output_padding, dilation : int or (vertical, horizontal)
    groups : int
    bias : bool
    padding_mode : "zeros"
    dtype : dtype
        Of the parameters; the input must have it too.

    Attributes
    ----------
    weight : Parameter (C, O/groups, KH, KW)
        Uniform on +-1 / sqrt(O/groups * KH * KW) at first, as in PyTorch.
    bias : Parameter (O,) or None
        Likewise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.ConvTranspose2d(8, 4, kernel_size=2, stride=2)
    >>> layer
    ConvTranspose2d(8, 4, kernel_size=(2, 2), stride=(2, 2))
    >>> layer(tg.ones((1, 8, 14, 14))).shape
    (1, 4, 28, 28)
    """

    _unusual: ClassVar[dict[str, Any]] = {
        "padding": (0, 0),
        "output_padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
    }
    function = staticmethod(conv_transpose2d)


class ConvTranspose1d(TransposedConvolution):
    """Transposed convolution of sequences (N, C, L): see `tg.conv_transpose1d`.

    Its arguments are those of `ConvTranspose2d`, an int each; the weights are (C, O/groups, K).
    """

    _unusual: ClassVar[dict[str, Any]] = {
        "padding": (0,),
        "output_padding": (0,),
        "dilation": (1,),
        "groups": 1,
    }
    axes: ClassVar[int] = 1
    function = staticmethod(conv_transpose1d)
