"""Layers that make images larger: by interpolation, or by a border."""

from __future__ import annotations

from typing import Any, ClassVar

from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Operand, Tensor, as_tensor, integers
from tinygraph.nn.module import Module
from tinygraph.nn.settings import Function, layer
from tinygraph.ops.shaping.pad import pad
from tinygraph.ops.windows.interpolate import interpolate


@layer(interpolate)
class Upsample(Function):
    """Images (N, C, H, W), or sequences (N, C, L), of another size: see `tg.interpolate`.

    Parameters
    ----------
    size : int or (OH, OW), optional
        Of the output; or
    scale_factor : float or (vertical, horizontal), optional
        How many times as large it is.
    mode : {"nearest", "nearest-exact", "linear", "bilinear"}
    align_corners, recompute_scale_factor : bool, optional

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    >>> layer(tg.ones((1, 8, 14, 14))).shape
    (1, 8, 28, 28)
    """

    size: int | tuple[int, ...] | None = None
    scale_factor: float | tuple[float, ...] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None


class UpsamplingNearest2d(Upsample):
    """`Upsample` with the nearest pixels."""

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
    ) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample`, bilinear and with aligned corners."""

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class ConstantPad2d(Module):
    """A border of one value around images (..., H, W): see `tg.pad`.

    Parameters
    ----------
    padding : int or (left, right, top, bottom)
    value : float

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.nn.ReflectionPad2d((1, 1, 0, 0))(tg.Tensor([[[[1.0, 2.0]]]])).value[0, 0]
    array([[2., 1., 2., 1.]], dtype=float32)
    """

    _settings: ClassVar[tuple[str, ...]] = ("padding",)
    mode: ClassVar[str] = "constant"
    axes: ClassVar[int] = 2  # the last ones

    def __init__(self, padding: int | tuple[int, ...], value: float = 0.0) -> None:
        layer, ends = type(self).__name__, 2 * self.axes
        given = integers(layer, "padding", padding)
        self.padding = given * ends if len(given) == 1 else given
        if len(self.padding) != ends:
            raise ArgumentError(layer, "padding", f"an int, or {ends} of them", repr(padding))
        self.value = value

    def forward(self, x: Operand) -> Tensor:
        x = as_tensor(x)
        if x.ndim < self.axes:
            raise ShapeError(type(self).__name__, "x", f"at least {self.axes} axes", x.shape)
        pairs = [self.padding[k : k + 2] for k in range(0, 2 * self.axes, 2)]
        widths: Any = (*[(0, 0)] * (x.ndim - self.axes), *pairs[::-1])
        return pad(x, widths, self.value, self.mode)


class ZeroPad2d(ConstantPad2d):
    """A border of zeros; arguments as `ConstantPad2d`."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding)


class ReflectionPad2d(ZeroPad2d):
    """A border of the image mirrored, without its outermost pixels."""

    mode: ClassVar[str] = "reflect"


class ReplicationPad2d(ZeroPad2d):
    """A border of the outermost pixels, repeated."""

    mode: ClassVar[str] = "replicate"


class CircularPad2d(ZeroPad2d):
    """A border of what lies at the other end."""

    mode: ClassVar[str] = "circular"
