"""strict=True: an image of which windows leave out pixels is refused."""

from __future__ import annotations

from typing import Any

from tinygraph.base import ShapeError
from tinygraph.engine import Pair, Shape
from tinygraph.ops.windows.sliding import windows


def require_covered(
    layer: str,
    shape: Shape,
    kernel: Pair,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair = (1, 1),
    ceil_mode: bool = False,
) -> None:
    """Raise ShapeError if floor division leaves rows or columns of an image (..., H, W) unread.

    What counts is the last pixel: padding may stay unread, and so may pixels between the windows
    where the stride is larger than the kernel, for these are meant.
    """
    if len(shape) < 2:
        return  # the op says what is wrong with this shape
    faults, nearest = [], []
    for axis, what in ((0, "row"), (1, "column")):
        pad = padding if isinstance(padding, str) else padding[axis]
        settings = (kernel[axis], stride[axis], pad, dilation[axis], ceil_mode)
        size = shape[axis - 2]
        unread = _unread(layer, size, *settings)
        if unread:
            sizes = _covered_sizes(layer, size, *settings)
            faults.append(f"{unread} {what}{'s' if unread > 1 else ''}")
            nearest.append(f"{('height', 'width')[axis]} {' or '.join(map(str, sizes))}")
    if faults:
        raise ShapeError(
            layer,
            "x",
            f"an image that the windows cover (kernel_size {kernel}, stride "
            f"{stride}, padding {padding}), nearest {', '.join(nearest)}",
            f"{shape[-2]}x{shape[-1]}, which leaves out {' and '.join(faults)}",
            "pad or crop the image, or drop strict=True",
        )


def _unread(
    layer: str, size: int, kernel: int, stride: int, padding: int | str, dilation: int, ceil: bool
) -> int:
    """How many pixels lie beyond the last window."""
    w = windows(layer, size, kernel, stride, padding, dilation, ceil)
    end = (w.out - 1) * stride + dilation * (kernel - 1) + 1 - w.before
    return max(0, size - end)


def _covered_sizes(layer: str, size: int, *settings: Any) -> list[int]:
    """The nearest size below, if there is one, and the nearest above, without unread pixels.

    One pixel more or less changes the number of unread pixels by one, modulo the stride.
    """
    stride, found = settings[1], []
    for step in (-1, 1):
        for candidate in range(size + step, size + step * (stride + 1), step):
            try:
                if candidate > 0 and not _unread(layer, candidate, *settings):
                    found.append(candidate)
                    break
            except ShapeError:  # smaller than one window
                break
    return found
