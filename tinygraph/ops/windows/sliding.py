"""Where a window that slides over an image stands: sizes, strides, padding, dilation."""

from __future__ import annotations

import math
from typing import NamedTuple

from tinygraph.base import ShapeError


class Windows(NamedTuple):
    """Where the windows of a convolution or a pooling lie on one axis of the input.

    Output position o and kernel offset k read the input at o * stride + k * dilation - before.
    """

    kernel: int
    stride: int
    dilation: int
    before: int  # padding at the low end
    after: int  # padding at the high end; negative where a floor division leaves inputs unread
    out: int  # number of windows

    def inside(self, offset: int, size: int) -> tuple[slice, slice]:
        """For one kernel offset: the output positions whose input is real, and those inputs.

        Every other output position reads padding at this offset.
        """
        start = offset * self.dilation - self.before  # input index read by output position 0
        first = max(0, -(start // self.stride))
        last = min(self.out, (size - 1 - start) // self.stride + 1)
        if last <= first:
            return slice(0, 0), slice(0, 0)
        low = start + first * self.stride
        return slice(first, last), slice(low, start + (last - 1) * self.stride + 1, self.stride)


def windows(
    op: str,
    size: int,
    kernel: int,
    stride: int,
    padding: int | str,
    dilation: int = 1,
    ceil_mode: bool = False,
) -> Windows:
    """Lay windows over an axis of `size` elements.

    The number of windows is floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1,
    as in torch.  'same' gives ceil(size / stride) windows and puts an odd element of padding at the
    high end.  With `ceil_mode` the division rounds up, but no window starts beyond the input and
    its low padding.

    >>> windows("conv2d", 28, kernel=3, stride=1, padding=0).out
    26
    """
    span = dilation * (kernel - 1) + 1
    if padding == "same":
        out = -(-size // stride)
        total = max((out - 1) * stride + span - size, 0)
        return Windows(kernel, stride, dilation, total // 2, total - total // 2, out)
    pad = int(padding)
    room = size + 2 * pad - span
    if room < 0:
        expected = (
            f"an image of at least {span - 2 * pad} pixels on each axis that the "
            f"kernel spans (kernel {kernel}, dilation {dilation}, padding {pad})"
        )
        way_out = "use a smaller kernel, more padding or padding='same'"
        raise ShapeError(op, "x", expected, f"{size} pixels", way_out)
    out = (math.ceil if ceil_mode else math.floor)(room / stride) + 1
    if ceil_mode and (out - 1) * stride >= size + pad:
        out -= 1
    after = (out - 1) * stride + span - size - pad
    return Windows(kernel, stride, dilation, pad, after, out)
