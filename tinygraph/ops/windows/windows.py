"""Windows that slide over images: what convolution, pooling and im2col share.

    N C H W    batch, channels, height, width
    KH KW      kernel size          OH OW      number of windows on each axis

Window (u, v) has at kernel offset (i, j) the pixel (u * stride + i * dilation - pad, v * ...).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from tinygraph.base import ArgumentError, frozen
from tinygraph.cuda import BoundLaunch, op_kernel
from tinygraph.engine import Array, Pair, Shape, Spec
from tinygraph.ops.common import documented, on_elements, remembered
from tinygraph.ops.common.arguments import padding_2d, pair, require_images
from tinygraph.ops.windows.sliding import Windows, windows


class Windows2d(NamedTuple):
    """Windows over the last two axes of images."""

    rows: Windows
    columns: Windows

    @property
    def out(self) -> Pair:
        """OH and OW."""
        return self.rows.out, self.columns.out

    def numbers(self, *fields: str) -> tuple[int, ...]:
        """Fields of both axes, side by side, as kernels take them."""
        return tuple([getattr(axis, field) for field in fields for axis in self])

    def offsets(self, image: Shape) -> Iterator[tuple[int, int, Any, Any]]:
        """For each kernel offset (i, j): the windows in which it is a real pixel, and those pixels.

        They are indices into the last two axes of arrays (..., OH, OW) and (..., H, W).
        """
        for i in range(self.rows.kernel):
            to_rows, from_rows = self.rows.inside(i, image[-2])
            for j in range(self.columns.kernel):
                to_columns, from_columns = self.columns.inside(j, image[-1])
                yield i, j, (..., to_rows, to_columns), (..., from_rows, from_columns)


@remembered
def windows_2d(
    op: str,
    size: Pair,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair = (1, 1),
    ceil_mode: bool = False,
) -> Windows2d:
    """Windows over images of H x W = `size`."""
    pads = (padding, padding) if isinstance(padding, str) else padding
    rows, columns = (
        windows(op, size[a], kernel_size[a], stride[a], pads[a], dilation[a], ceil_mode)
        for a in (0, 1)
    )
    return Windows2d(rows, columns)


def sliding(
    op: str, stride: int | Pair, padding: int | Pair | str, dilation: int | Pair
) -> tuple[Pair, Pair | str, Pair]:
    """The arguments of how windows slide, as ops hold them."""
    return pair(op, "stride", stride), padding_2d(op, padding), pair(op, "dilation", dilation)


# ---- pooling --------------------------------------------------------------------------------


@frozen
class Pooling:
    """Mixed into max_pool2d and avg_pool2d: one number for each window of each channel."""

    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    ceil_mode: bool

    name: ClassVar[str]
    stem: ClassVar[str]  # of the file of its kernels
    takes_empty: ClassVar[bool] = True  # images without a pixel

    def _windows(self, image: Shape) -> Windows2d:
        settings = self.kernel_size, self.stride, self.padding, (1, 1), self.ceil_mode
        return windows_2d(self.name, image[2:], *settings)

    def infer(self, x: Spec) -> Spec:
        require_images(self.name, x, self.takes_empty)
        return Spec((*x.shape[:2], *self._windows(x.shape).out), x.dtype)

    def _launch(self, direction: str, image: Shape, elements: int, *arrays: Array) -> None:
        """Launch a kernel on the arrays, with a thread for each of so many elements."""
        if elements:
            _over(self, direction, image, arrays[0].dtype, elements)(*arrays)

    def _geometry(self, image: Shape) -> tuple[int, ...]:
        """H W OH OW KH KW, strides and padding before, as the kernels take them."""
        at = self._windows(image)
        return (*image[2:], *at.numbers("out", "kernel", "stride", "before"))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


@remembered
def _over(op: Pooling, direction: str, image: Shape, dtype: Any, elements: int) -> BoundLaunch:
    kernel = op_kernel(op.stem, f"{op.stem}_{direction}", dtype)
    return on_elements(kernel, elements, elements, *op._geometry(image))


def pooling(
    op: str,
    result: str,
    kernel_size: int | Pair,
    stride: int | Pair | None,
    padding: int | Pair | str,
    ceil_mode: bool,
) -> tuple[Pair, Pair, Pair | str, bool]:
    """The arguments of a pooling as `Pooling` holds them; windows of padding alone are refused."""
    kernel = pair(op, "kernel_size", kernel_size)
    step = kernel if stride is None else pair(op, "stride", stride)
    pad = padding_2d(op, padding)
    if not isinstance(pad, str) and (2 * pad[0] > kernel[0] or 2 * pad[1] > kernel[1]):
        way_out = f"a window of padding alone has no {result}; pad with tg.pad instead"
        raise ArgumentError(op, "padding", f"at most half of kernel_size {kernel}", pad, way_out)
    return kernel, step, pad, bool(ceil_mode)


pooled = documented(
    """
    Parameters
    ----------
    x : Tensor (N, C, H, W)
        float32 or float64.
    kernel_size : int or (vertical, horizontal)
    stride : int or (vertical, horizontal), optional
        The kernel size where it is not given: windows side by side.
    padding : int, (vertical, horizontal) or "same"
        At most half the kernel size; "same" gives ceil(H / stride) x ceil(W / stride) windows, with
        an odd row or column of padding at the bottom or right.
    ceil_mode : bool
        Round the number of windows up instead of down.

    Returns
    -------
    Tensor (N, C, OH, OW)
        OH = floor((H + 2 * padding - KH) / stride) + 1, OW likewise.  A NaN in a window shows.

    Raises
    ------
    ShapeError
        `x` has not four axes, or the kernel is larger than the padded image.
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        A kernel size or stride below 1, or padding larger than half the kernel.
    """
)
