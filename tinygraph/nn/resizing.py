"""Layers that make images larger: by interpolation."""

from __future__ import annotations

from typing import Any, ClassVar

from tinygraph.nn.module import Module
from tinygraph.ops.interpolate import interpolate
from tinygraph.tensor import Operand, Tensor


class Upsample(Module):
    """Images (N, C, H, W), or sequences (N, C, L), of another size: see `tg.interpolate`.

    Parameters
    ----------
    size : int or (OH, OW), optional
        Of the output; or
    scale_factor : float or (vertical, horizontal), optional
        How many times as large it is.
    mode : {"nearest", "nearest-exact", "linear", "bilinear"}
    align_corners : bool, optional

    Examples
    --------
    >>> import tinygraph as tg
    >>> layer = tg.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    >>> layer(tg.ones((1, 8, 14, 14))).shape
    (1, 8, 28, 28)
    """

    _unusual: ClassVar[dict[str, Any]] = {
        "size": None,
        "scale_factor": None,
        "mode": "",
        "align_corners": None,
    }

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x: Operand) -> Tensor:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)


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
