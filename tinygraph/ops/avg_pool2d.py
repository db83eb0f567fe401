"""Average pooling: the mean of each window.

    N C H W    batch, channels, height, width
    KH KW      kernel size          OH OW      number of windows on each axis

    y[n, c, u, v]  = sum over (i, j) of x[n, c, u*stride + i - pad, v*stride + j - pad] / D[u, v]
    gx[n, c, h, w] = sum of gy[n, c, u, v] / D[u, v] over the windows (u, v) that cover (h, w)

Padding counts as zeros.  The divisor D is the number of pixels of the window that lie in the
padded image (KH * KW, but fewer where a window overhangs it in ceil_mode), or, without
count_include_pad, in the image itself.  A sum over a rectangle is a sum over its columns of sums
over its rows, so two passes of KH and KW additions do the work of KH * KW.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.errors import ArgumentError, ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.im2col import Windows2d, of_both_axes, windows_2d
from tinygraph.ops.shared.launch import for_each
from tinygraph.shapes import (
    Array,
    Pair,
    Shape,
    Spec,
    Windows,
    padding_2d,
    pair,
    require_float,
    require_ndim,
)
from tinygraph.tensor import Operand, Tensor


@frozen
class AvgPool2d(Op):
    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    ceil_mode: bool
    count_include_pad: bool

    def _windows(self, size: Shape) -> Windows2d:
        return windows_2d(
            self.name, size, self.kernel_size, self.stride, self.padding, (1, 1), self.ceil_mode
        )

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        require_ndim(self.name, "x", x, 4, "(N, C, H, W)")
        if not x.shape[2] or not x.shape[3]:
            raise ShapeError(self.name, "x", "images of at least one pixel", x.shape)
        rows, columns = self._windows(x.shape)
        return Spec((*x.shape[:2], rows.out, columns.out), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        n, c, _, w = x.shape
        rows, columns = self._windows(x.shape)
        bands = mem.zeros((n, c, rows.out, w), x.dtype)  # sums over the rows of each window
        for i in range(rows.kernel):
            to, source = rows.inside(i, x.shape[2])
            bands[:, :, to] += x[:, :, source]
        y = mem.zeros((n, c, rows.out, columns.out), x.dtype)
        for j in range(columns.kernel):
            to, source = columns.inside(j, w)
            y[..., to] += bands[..., source]
        y /= self._divisor(x.shape, x.dtype)
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]) -> Gradients:
        n, c, _, w = shape
        rows, columns = self._windows(shape)
        share = mem.empty(gy.shape, gy.dtype)  # what each pixel of a window receives
        np.divide(gy, self._divisor(shape, gy.dtype), out=share)
        bands = mem.zeros((n, c, rows.out, w), gy.dtype)
        for j in range(columns.kernel):
            source, to = columns.inside(j, w)
            bands[..., to] += share[..., source]
        gx = mem.zeros(shape, gy.dtype)
        for i in range(rows.kernel):
            source, to = rows.inside(i, shape[2])
            gx[:, :, to] += bands[:, :, source]
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        rows, columns = self._windows(x.shape)
        y = mem.empty((*x.shape[:2], rows.out, columns.out), x.dtype)
        kernel = op_kernel("avg_pool2d", "avg_pool2d_forward", x.dtype)
        for_each(kernel, y.size, x, y, y.size, *self._geometry(x.shape))
        return y, x.shape

    def backward_kernel(
        self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        kernel = op_kernel("avg_pool2d", "avg_pool2d_backward", gy.dtype)
        for_each(kernel, gx.size, gy, gx, gx.size, *self._geometry(shape))
        return (gx,)

    def _geometry(self, x: Shape) -> tuple[int, ...]:
        """The sizes, strides and paddings in the order in which the kernels take them."""
        rows, columns = self._windows(x)
        after = self._after(rows), self._after(columns)
        sizes = of_both_axes((rows, columns), "out", "kernel", "stride", "before")
        return (*x[2:], *sizes, *after, int(self.count_include_pad))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"

    def _divisor(self, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """How many pixels of each window count, (OH, OW): a product of one factor for each axis."""
        rows, columns = self._windows(shape)
        high, wide = self._counted(rows, shape[2]), self._counted(columns, shape[3])
        return np.outer(high, wide).astype(dtype)

    def _counted(self, axis: Windows, size: int) -> Array:
        """How many elements of each window count on one axis."""
        start = np.arange(axis.out) * axis.stride - axis.before
        end = start + axis.kernel
        if not self.count_include_pad:
            return np.minimum(end, size) - np.maximum(start, 0)
        return np.minimum(end, size + self._after(axis)) - start

    def _after(self, axis: Windows) -> int:
        """How much padding at the high end counts."""
        # "same" lays the padding so that every window fits; else it is as wide on both sides
        return axis.after if isinstance(self.padding, str) else axis.before


def avg_pool2d(
    x: Operand,
    kernel_size: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair | str = 0,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of an image.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        float32 or float64.
    kernel_size : int or (vertical, horizontal)
    stride : int or (vertical, horizontal), optional
        The kernel size where it is not given: windows side by side.
    padding : int, (vertical, horizontal) or "same"
        Zeros around the image, at most half the kernel size; "same" gives ceil(H / stride) x
        ceil(W / stride) windows, with an odd row or column of zeros at the bottom or right.
    ceil_mode : bool
        Round the number of windows up instead of down.  What a window has outside of the padded
        image never counts.
    count_include_pad : bool
        Divide by the pixels of the window in the padded image; if False, in the image alone.

    Returns
    -------
    Tensor (N, C, OH, OW)
        OH = floor((H + 2 * padding - KH) / stride) + 1, OW likewise.

    Raises
    ------
    ShapeError
        `x` has not four axes or no pixel, or the kernel is larger than the padded image.
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        A kernel size or stride below 1, or padding larger than half the kernel.

    References
    ----------
    LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
    Proc. IEEE 1998 (subsampling layers).

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(16.0).reshape(1, 1, 4, 4)
    >>> tg.avg_pool2d(x, 2).value[0, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    kernel = pair("avg_pool2d", "kernel_size", kernel_size)
    step = kernel if stride is None else pair("avg_pool2d", "stride", stride)
    pad = padding_2d("avg_pool2d", padding)
    if not isinstance(pad, str) and (2 * pad[0] > kernel[0] or 2 * pad[1] > kernel[1]):
        raise ArgumentError(
            "avg_pool2d",
            "padding",
            f"at most half of kernel_size {kernel}",
            pad,
            "a window of padding alone has no mean; pad with tg.pad instead",
        )
    return AvgPool2d(kernel, step, pad, bool(ceil_mode), bool(count_include_pad))(x)
