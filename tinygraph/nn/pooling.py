"""Pooling layers."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, ClassVar

from tinygraph.base import ArgumentError
from tinygraph.engine import Operand, Pair, Tensor, as_tensor
from tinygraph.nn.covered import require_covered
from tinygraph.nn.module import Module
from tinygraph.nn.settings import Function, layer, setting
from tinygraph.ops.common import padding_2d, pair
from tinygraph.ops.windows.adaptive_avg_pool2d import adaptive_avg_pool1d, adaptive_avg_pool2d
from tinygraph.ops.windows.avg_pool2d import avg_pool1d, avg_pool2d
from tinygraph.ops.windows.global_avg_pool2d import global_avg_pool2d
from tinygraph.ops.windows.max_pool2d import max_pool1d, max_pool2d


class Pool2d(Module):
    """What MaxPool2d and AvgPool2d share: windows over an image."""

    _settings: ClassVar[tuple[str, ...]] = ("kernel_size", "stride", "padding", "ceil_mode")
    _unusual: ClassVar[dict[str, Any]] = {"strict": False}
    dilation: Pair = (1, 1)

    def __init__(
        self,
        kernel_size: int | Pair,
        stride: int | Pair | None = None,
        padding: int | Pair | str = 0,
        *,
        ceil_mode: bool = False,
        strict: bool = False,
    ) -> None:
        layer = type(self).__name__
        self.kernel_size = pair(layer, "kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else pair(layer, "stride", stride)
        self.padding = padding_2d(layer, padding)
        self.ceil_mode = bool(ceil_mode)
        self.strict = bool(strict)

    def covered(self, x: Operand) -> Tensor:
        """x as a tensor; if strict, an error where the windows leave out pixels."""
        x = as_tensor(x)
        if self.strict:
            require_covered(
                type(self).__name__,
                x.shape,
                self.kernel_size,
                self.stride,
                self.padding,
                self.dilation,
                self.ceil_mode,
            )
        return x


class MaxPool2d(Pool2d):
    """The maximum of each window of images (N, C, H, W): see `tg.max_pool2d`.

    Parameters
    ----------
    kernel_size : int or (vertical, horizontal)
    stride : int or (vertical, horizontal), optional
        The kernel size where it is not given.
    padding : int, (vertical, horizontal) or "same"
    dilation : int or (vertical, horizontal)
        How far the elements of a window lie apart.
    return_indices : False
        Places of maxima are kept for backward alone.
    ceil_mode : bool
        Round the number of windows up instead of down.
    strict : bool
        Refuse an image of which the windows leave out pixels at the bottom or right.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.MaxPool2d(2)(tg.ones((1, 8, 27, 27))).shape
    (1, 8, 13, 13)
    >>> tg.nn.MaxPool2d(2, strict=True)(tg.ones((1, 8, 26, 26))).shape
    (1, 8, 13, 13)
    """

    _unusual: ClassVar[dict[str, Any]] = {"strict": False, "dilation": (1, 1)}

    def __init__(
        self,
        kernel_size: int | Pair,
        stride: int | Pair | None = None,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode=ceil_mode, strict=strict)
        self.dilation = pair("MaxPool2d", "dilation", dilation)
        if return_indices:
            raise ArgumentError("MaxPool2d", "return_indices", "False", return_indices)

    def forward(self, x: Operand) -> Tensor:
        slides = self.kernel_size, self.stride, self.padding, self.dilation
        return max_pool2d(self.covered(x), *slides, self.ceil_mode)


class AvgPool2d(Pool2d):
    """The mean of each window of images (N, C, H, W): see `tg.avg_pool2d`.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, strict
        As for `MaxPool2d`.
    count_include_pad : bool
        Whether pixels of the padding count in the mean, as zeros.
    divisor_override : int, optional
        What sums are divided by, whatever the windows hold.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.AvgPool2d(2)(tg.Tensor([[[[1.0, 2.0], [3.0, 6.0]]]])).item()
    3.0
    """

    _unusual: ClassVar[dict[str, Any]] = {
        "strict": False,
        "count_include_pad": True,
        "divisor_override": None,
    }

    def __init__(
        self,
        kernel_size: int | Pair,
        stride: int | Pair | None = None,
        padding: int | Pair | str = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode=ceil_mode, strict=strict)
        self.count_include_pad = bool(count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, x: Operand) -> Tensor:
        return avg_pool2d(
            self.covered(x),
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


@layer(global_avg_pool2d)
class GlobalAvgPool2d(Function):
    """The mean over each image, (N, C, H, W) to (N, C, 1, 1): see `tg.global_avg_pool2d`."""


@layer(adaptive_avg_pool2d)
class AdaptiveAvgPool2d(Function):
    """Images of any size to (N, C, *output_size): see `tg.adaptive_avg_pool2d`.

    Parameters
    ----------
    output_size : int or (OH, OW)
        None on an axis: the size of the image.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.AdaptiveAvgPool2d((7, 1))(tg.ones((2, 8, 10, 12))).shape
    (2, 8, 7, 1)
    """

    output_size: int | tuple[int | None, int | None] | None


@layer(adaptive_avg_pool1d)
class AdaptiveAvgPool1d(Function):
    """Sequences of any length to (N, C, output_size): see `tg.adaptive_avg_pool1d`."""

    output_size: int


@layer(max_pool1d)
class MaxPool1d(Function):
    """The maximum of each window of sequences (N, C, L): see `tg.max_pool1d`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.MaxPool1d(2)(tg.ones((1, 8, 27))).shape
    (1, 8, 13)
    """

    kernel_size: int
    stride: int | None = None
    padding: int | str = 0
    dilation: int = setting(default=1, rare=True)
    return_indices: InitVar[bool] = False
    ceil_mode: bool = setting(default=False, rare=True)

    def __post_init__(self, return_indices: bool) -> None:
        super().__post_init__()
        self.stride = self.kernel_size if self.stride is None else self.stride
        if return_indices:
            raise ArgumentError("MaxPool1d", "return_indices", "False", return_indices)


@layer(avg_pool1d)
class AvgPool1d(Function):
    """The mean of each window of sequences (N, C, L): see `tg.avg_pool1d`."""

    kernel_size: int
    stride: int | None = None
    padding: int | str = 0
    ceil_mode: bool = setting(default=False, rare=True)
    count_include_pad: bool = setting(default=True, rare=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stride = self.kernel_size if self.stride is None else self.stride
