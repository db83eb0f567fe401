"""Max-pooling: the largest element of each window.

    N C H W    batch, channels, height, width
    KH KW      kernel size          OH OW      number of windows on each axis

    y[n, c, u, v]  = max over (i, j) of x[n, c, u * stride + i * dilation - pad, v * ...]
    gx[n, c, h, w] = sum of gy over the windows whose maximum lies at (h, w)

The first maximum of a window (row by row) wins; a NaN counts as larger than everything, so that it
shows; padding never wins.  Forward stores which pixel of its window that is, i * KW + j, in a byte
where that suffices (a kernel stores h * W + w as int32); backward only reads it.

Source: Ranzato, Huang, Boureau, LeCun, "Unsupervised learning of invariant feature hierarchies",
CVPR 2007.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Operand, Pair, Shape, Spec, Tensor
from tinygraph.ops.common import pair
from tinygraph.ops.common.blocks import Blocks
from tinygraph.ops.windows.sequences import along, of_sequences, pooling_along
from tinygraph.ops.windows.sliding import Windows
from tinygraph.ops.windows.windows import Pooling, Windows2d, pooled, pooling, windows_2d


@frozen
class MaxPool2d(Pooling, Op):
    dilation: Pair = (1, 1)

    stem: ClassVar[str] = "max_pool2d"

    def _windows(self, image: Shape) -> Windows2d:
        settings = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        return windows_2d(self.name, image[2:], *settings)

    def _geometry(self, image: Shape) -> tuple[int, ...]:
        return (*super()._geometry(image), *self.dilation)

    def infer(self, x: Spec) -> Spec:
        y = super().infer(x)
        if self.dilation != (1, 1):
            for axis, size in zip(self._windows(x.shape), x.shape[2:], strict=True):
                if size and _has_empty(axis, size):
                    expected = (
                        f"an image of which each window has a pixel (dilation {self.dilation})"
                    )
                    raise ShapeError(self.name, "x", expected, x.shape, "less padding, or tg.pad")
        return y

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        at = self._windows(x.shape)
        y = mem.empty((*x.shape[:2], *at.out), x.dtype)
        blocks = Blocks(mem, len(x), x.nbytes // max(1, len(x)))
        if not mem.needs[0]:
            blocks.run(lambda _, block: _maxima(at, x[block], y[block]))
            return y, None
        # `winner` numbers the kernel offsets 0, 1, ... in the order of visits; a later offset wins
        # only if it is larger, so the winner is the largest number that was ever entered.
        few = at.rows.kernel * at.columns.kernel <= 256
        winner = mem.empty(y.shape, np.uint8 if few else np.int32)
        first = _first_inside(at)
        of_thread = blocks.threads, blocks.largest, *y.shape[1:]
        larger, entries = mem.empty(of_thread, bool), mem.empty(of_thread, winner.dtype)
        copies = mem.empty(of_thread, x.dtype)

        def enter(thread: int, block: slice) -> None:
            images, best, won = x[block], y[block], winner[block]
            wins, entry, copied = (a[thread, : len(images)] for a in (larger, entries, copies))
            has_nan = False

            def compare(number: int, to: Any, pixels: Array) -> Array:
                candidate = copied[to]  # they lie apart, and are read twice
                candidate[...] = pixels
                np.greater(candidate, best[to], out=wins[to])
                if has_nan:
                    wins[to] |= np.isnan(candidate) & ~np.isnan(best[to])
                np.multiply(wins[to], winner.dtype.type(number), out=entry[to])
                np.maximum(won[to], entry[to], out=won[to])
                return candidate

            won[...] = first
            _maxima(at, images, best, compare)
            has_nan = best.size > 0 and np.isnan(np.max(best))
            if has_nan:  # rare: all of it again, with one look more
                won[...] = first
                _maxima(at, images, best, compare)

        blocks.run(enter)
        return y, (winner, x.shape)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        winner, x_shape = saved
        at = self._windows(x_shape)
        overlap = any((axis.kernel - 1) * axis.dilation >= axis.stride for axis in at)
        tiles = not overlap and all(map(_tiles, at, x_shape[2:]))
        gx = (mem.empty if tiles else mem.zeros)(x_shape, gy.dtype)
        blocks = Blocks(mem, len(gx), gx.nbytes // max(1, len(gx)))
        of_thread = blocks.threads, blocks.largest, *gy.shape[1:]
        equal = mem.empty(of_thread, bool)
        shares = mem.empty(of_thread if overlap else (blocks.threads, 0), gy.dtype)

        def send(thread: int, block: slice) -> None:
            up, won, down = gy[block], winner[block], gx[block]
            wins, share = equal[thread, : len(up)], shares[thread, : len(up)]
            for number, (_, _, to, source) in enumerate(at.offsets(x_shape)):
                np.equal(won[to], winner.dtype.type(number), out=wins[to])
                if overlap:  # several windows may send a gradient to one pixel
                    down[source] += np.multiply(up[to], wins[to], out=share[to])
                else:
                    np.multiply(up[to], wins[to], out=down[source])

        blocks.run(send)
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty((*x.shape[:2], *self._windows(x.shape).out), x.dtype)
        argmax = mem.empty(y.shape if mem.needs[0] else (0,), np.int32)
        self._launch("forward", x.shape, y.size, x, y, argmax)
        return y, (argmax, x.shape) if mem.needs[0] else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        argmax, x_shape = saved
        gx = mem.empty(x_shape, gy.dtype)
        self._launch("backward", x_shape, gx.size, gy, argmax, gx)
        return (gx,)


def _maxima(at: Windows2d, x: Array, y: Array, compare: Any = None) -> None:
    """Write the maxima of windows into y; what `compare` gives for each offset takes its place."""
    offsets = list(enumerate(at.offsets(x.shape)))
    if at.rows.before or at.columns.before:
        y[...] = -np.inf
    else:  # the first pixel of each window is one
        _, (_, _, to, source) = offsets.pop(0)
        y[to] = x[source]
    for number, (_, _, to, source) in offsets:
        candidate = x[source] if compare is None else compare(number, to, x[source])
        np.maximum(y[to], candidate, out=y[to])


def _first_inside(at: Windows2d) -> Array:
    """The number of the first kernel offset of each window that is a real pixel, (OH, OW)."""
    top, left = (
        -(np.minimum(np.arange(axis.out) * axis.stride - axis.before, 0) // axis.dilation)
        for axis in at
    )
    return top[:, None] * at.columns.kernel + left


def _tiles(axis: Windows, size: int) -> bool:
    """Whether each element lies in a window, and only in one if windows do not overlap."""
    return not axis.before and axis.stride == axis.kernel and axis.out * axis.kernel == size


def _has_empty(axis: Windows, size: int) -> bool:
    """Whether a window that begins in the padding steps over all elements."""
    starts = range(-axis.before, min(0, axis.out * axis.stride - axis.before), axis.stride)
    ends = [start + (axis.kernel - 1) * axis.dilation for start in starts]
    return any(
        start % axis.dilation > min(end, size - 1) for start, end in zip(starts, ends, strict=True)
    )


@pooled
def max_pool2d(
    x: Operand,
    kernel_size: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The maximum of each window of an image.

    Parameters
    ----------
    padding : int, (vertical, horizontal) or "same"
        ... Padding never wins, not even against -inf or NaN.
    dilation : int or (vertical, horizontal)
        How far the elements of a window lie apart.
    return_indices : False
        Places of maxima are kept for backward alone.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(16.0).reshape(1, 1, 4, 4)
    >>> tg.max_pool2d(x, 2).value[0, 0]
    array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    return _pooled(
        "max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


def _pooled(
    name: str,
    x: Operand,
    kernel_size: int | Pair,
    stride: int | Pair | None,
    padding: int | Pair | str,
    dilation: int | Pair,
    ceil_mode: bool,
    return_indices: bool,
) -> Tensor:
    if return_indices:
        way_out = "tg.im2col(x, kernel_size, stride) has the windows, and tg.argmax their places"
        raise ArgumentError(name, "return_indices", "False", return_indices, way_out)
    settings = pooling(name, "maximum", kernel_size, stride, padding, ceil_mode)
    return MaxPool2d(*settings, pair(name, "dilation", dilation))(x)


@pooled
def max_pool1d(
    x: Operand,
    kernel_size: int,
    stride: int | None = None,
    padding: int | str = 0,
    dilation: int = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The maximum of each window of a sequence: `max_pool2d` of images of height 1.

    Parameters
    ----------
    x : Tensor (N, C, L)
        float32 or float64.
    kernel_size, stride, padding, dilation : int
        As for `max_pool2d`.
    return_indices : False
        Places of maxima are kept for backward alone.

    Returns
    -------
    Tensor (N, C, OL)
        OL = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.max_pool1d([[[1.0, 3.0, 2.0, 0.0]]], 2).value[0, 0]
    array([3., 2.], dtype=float32)
    """
    name = "max_pool1d"
    settings = (
        *pooling_along(name, kernel_size, stride, padding),
        along(name, "dilation", dilation, 1, 1),
    )
    return of_sequences(
        name, x, lambda image: _pooled(name, image, *settings, ceil_mode, return_indices)
    )
