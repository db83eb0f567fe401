"""Average pooling: the mean of each window.

    N C H W    batch, channels, height, width
    KH KW      kernel size          OH OW      number of windows on each axis

    y[n, c, u, v]  = sum over (i, j) of x[n, c, u*stride + i - pad, v*stride + j - pad] / D[u, v]
    gx[n, c, h, w] = sum of gy[n, c, u, v] / D[u, v] over the windows (u, v) that cover (h, w)

Padding counts as zeros.  The divisor D is the number of pixels of the window that lie in the
padded image (KH * KW, but fewer where a window overhangs it in ceil_mode), or, without
count_include_pad, in the image itself; or a number that is given.  A sum over a rectangle is a sum
over its columns of sums over its rows, so two passes of KH and KW additions do the work of KH * KW.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
Proc. IEEE 1998 (subsampling layers).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, frozen, number
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Pair, Shape, Tensor
from tinygraph.ops.common.totals import CHAIN, add_parts, total
from tinygraph.ops.elementwise.arithmetic import mul
from tinygraph.ops.windows.sequences import of_sequences, pooling_along
from tinygraph.ops.windows.sliding import Windows
from tinygraph.ops.windows.windows import Pooling, pooled, pooling


@frozen
class AvgPool2d(Pooling, Op):
    count_include_pad: bool
    whole: bool = False  # every window counts as KH * KW pixels

    stem: ClassVar[str] = "avg_pool2d"
    takes_empty: ClassVar[bool] = False

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        n, c, _, w = x.shape
        rows, columns = self._windows(x.shape)
        bands = mem.zeros((n, c, rows.out, w), x.dtype)  # sums over the rows of each window
        _gather(bands.swapaxes(2, 3), x.swapaxes(2, 3), rows)
        y = mem.zeros((n, c, rows.out, columns.out), x.dtype)
        _gather(y, bands, columns)
        y /= self._divisor(x.shape, x.dtype)
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        n, c, _, w = shape
        rows, columns = self._windows(shape)
        share = mem.empty(gy.shape, gy.dtype)  # what each pixel of a window receives
        np.divide(gy, self._divisor(shape, gy.dtype), out=share)
        bands = mem.zeros((n, c, rows.out, w), gy.dtype)
        _spread(bands, share, columns)
        gx = mem.zeros(shape, gy.dtype)
        _spread(gx.swapaxes(2, 3), bands.swapaxes(2, 3), rows)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty((*x.shape[:2], *self._windows(x.shape).out), x.dtype)
        self._launch("forward", x.shape, y.size, x, y)
        return y, x.shape

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        self._launch("backward", shape, gx.size, gy, gx)
        return (gx,)

    def _geometry(self, image: Shape) -> tuple[int, ...]:
        after = [self._after(axis) for axis in self._windows(image)]
        return (*super()._geometry(image), *after, int(self.count_include_pad))

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
        if self.whole:  # so far that no window ends behind it
            return axis.before + axis.kernel
        # "same" lays the padding so that every window fits; else it is as wide on both sides
        return axis.after if isinstance(self.padding, str) else axis.before


def _gather(y: Array, x: Array, axis: Windows) -> None:
    """Add to y (..., windows) the pixels of x (..., pixels) that each window covers."""

    def tap(k: int) -> tuple[Any, Array]:
        to, source = axis.inside(k, x.shape[-1])
        return (..., to), x[..., source]

    if _are_few(axis):
        for u in range(axis.out):
            total(x[..., _covered(axis, u)], (x.ndim - 1,), y[..., u])
    else:
        add_parts(y, tap, 0, axis.kernel)


def _spread(x: Array, y: Array, axis: Windows) -> None:
    """Add to x (..., pixels) what the windows y (..., windows) give to the pixels they cover."""

    def tap(k: int) -> tuple[Any, Array]:
        source, to = axis.inside(k, x.shape[-1])
        return (..., to), y[..., source]

    def window(u: int) -> tuple[Any, Array]:
        return (..., _covered(axis, u)), y[..., u, None]

    if _are_few(axis):
        add_parts(x, window, 0, axis.out)
    else:
        add_parts(x, tap, 0, axis.kernel)


def _are_few(axis: Windows) -> bool:
    """Whether there are fewer windows than pixels in each: then windows come one after the other,
    and not the pixels at one place of all windows."""
    return axis.out < axis.kernel and axis.kernel > CHAIN


def _covered(axis: Windows, u: int) -> slice:
    start = u * axis.stride - axis.before
    return slice(max(start, 0), start + axis.kernel)


@pooled
def avg_pool2d(
    x: Operand,
    kernel_size: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of an image.

    Parameters
    ----------
    padding : int, (vertical, horizontal) or "same"
        ... Padding counts as zeros.
    ceil_mode : bool
        ... What a window has outside of the padded image never counts.
    count_include_pad : bool
        Divide by the pixels of the window in the padded image; if False, in the image alone.
    divisor_override : int, optional
        Divide by this number, whatever the windows hold; 1 gives their sums.

    Raises
    ------
    ShapeError
        `x` has not four axes or no pixel, or the kernel is larger than the padded image.
    ArgumentError
        A kernel size or stride below 1, padding larger than half the kernel, or a divisor of 0.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(16.0).reshape(1, 1, 4, 4)
    >>> tg.avg_pool2d(x, 2).value[0, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    settings = pooling("avg_pool2d", "mean", kernel_size, stride, padding, ceil_mode)
    if divisor_override is None:
        return AvgPool2d(*settings, bool(count_include_pad))(x)
    divisor = number("avg_pool2d", "divisor_override", divisor_override)
    if not divisor:
        expected = "another number than 0"
        raise ArgumentError("avg_pool2d", "divisor_override", expected, divisor_override)
    (rows, columns), *_ = settings
    return mul(AvgPool2d(*settings, True, whole=True)(x), rows * columns / divisor)


@pooled
def avg_pool1d(
    x: Operand,
    kernel_size: int,
    stride: int | None = None,
    padding: int | str = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of a sequence: `avg_pool2d` of images of height 1.

    Parameters
    ----------
    x : Tensor (N, C, L)
        float32 or float64.
    kernel_size, stride, padding : int
        As for `avg_pool2d`.
    count_include_pad : bool
        Whether elements of the padding count in the mean, as zeros.

    Returns
    -------
    Tensor (N, C, OL)
        OL = floor((L + 2 * padding - kernel_size) / stride) + 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.avg_pool1d([[[1.0, 3.0, 2.0, 0.0]]], 2).value[0, 0]
    array([2., 1.], dtype=float32)
    """
    name = "avg_pool1d"
    given = pooling(name, "mean", *pooling_along(name, kernel_size, stride, padding), ceil_mode)
    return of_sequences(name, x, AvgPool2d(*given, bool(count_include_pad)))
