"""Max-pooling: the largest element of each window.

    N C H W    batch, channels, height, width
    KH KW      kernel size          OH OW      number of windows on each axis

    y[n, c, u, v]  = max over (i, j) of x[n, c, u * stride + i - pad, v * stride + j - pad]
    gx[n, c, h, w] = sum of gy over the windows whose maximum lies at (h, w)

The first maximum of a window (row by row) wins; a NaN counts as larger than everything, so that it
shows; padding never wins.  Forward stores where the maximum lies, h * W + w as int32; backward only
reads it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import op_kernel
from tinygraph.errors import ArgumentError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.im2col import Windows2d, of_both_axes, windows_2d
from tinygraph.ops.shared.launch import for_each
from tinygraph.shapes import Array, Pair, Shape, Spec, padding_2d, pair, require_float, require_ndim
from tinygraph.tensor import Operand, Tensor


@frozen
class MaxPool2d(Op):
    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    ceil_mode: bool

    def _windows(self, size: Shape) -> Windows2d:
        return windows_2d(
            self.name, size, self.kernel_size, self.stride, self.padding, (1, 1), self.ceil_mode
        )

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        require_ndim(self.name, "x", x, 4, "(N, C, H, W)")
        rows, columns = self._windows(x.shape)
        return Spec((*x.shape[:2], rows.out, columns.out), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        at = self._windows(x.shape)
        rows, columns = at
        y = mem.empty((*x.shape[:2], rows.out, columns.out), x.dtype)
        y[...] = -np.inf
        if not mem.needs[0]:
            for _, _, to, source in _offsets(at, x.shape):
                np.maximum(y[to], x[source], out=y[to])
            return y, None
        # `winner` numbers the kernel offsets 0, 1, ... in the order of visits; a later offset wins
        # only if it is larger, so the winner is the largest number that was ever entered.
        kernel = rows.kernel * columns.kernel
        winner = mem.empty(y.shape, np.uint8 if kernel <= 256 else np.int32)
        winner[...] = _first_inside(at, x.shape)
        larger = mem.empty(y.shape, bool)
        entry = mem.empty(y.shape, winner.dtype)
        has_nan = x.size > 0 and np.isnan(np.max(x))
        for i, j, to, source in _offsets(at, x.shape):
            best, candidate, wins = y[to], x[source], larger[to]
            np.greater(candidate, best, out=wins)
            if has_nan:
                wins |= np.isnan(candidate) & ~np.isnan(best)
            np.multiply(wins, winner.dtype.type(i * columns.kernel + j), out=entry[to])
            np.maximum(winner[to], entry[to], out=winner[to])
            np.maximum(best, candidate, out=best)
        argmax = mem.empty(y.shape, np.int32)
        inside_window = np.arange(kernel, dtype=np.int32)  # offset (i, j) -> i * W + j
        inside_window += inside_window // columns.kernel * np.int32(x.shape[3] - columns.kernel)
        np.take(inside_window, winner, out=argmax, mode="clip")
        argmax += _corners(at, x.shape)
        return y, (argmax, x.shape)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        argmax, x_shape = saved
        at = self._windows(x_shape)
        corners = _corners(at, x_shape)
        gx = mem.zeros(x_shape, gy.dtype)
        wins = mem.empty(gy.shape, bool)
        overlap = any(axis.kernel > axis.stride for axis in at)
        share = mem.empty(gy.shape if overlap else (0,), gy.dtype)
        for i, j, to, source in _offsets(at, x_shape):
            here = corners[to[2:]] + np.int32(i * x_shape[3] + j)  # (OH, OW), as h * W + w
            np.equal(argmax[to], here, out=wins[to])
            if overlap:  # several windows may send a gradient to one pixel
                gx[source] += np.multiply(gy[to], wins[to], out=share[to])
            else:
                np.multiply(gy[to], wins[to], out=gx[source])
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        at = self._windows(x.shape)
        y = mem.empty((*x.shape[:2], at[0].out, at[1].out), x.dtype)
        argmax = mem.empty(y.shape if mem.needs[0] else (0,), np.int32)
        kernel = op_kernel("max_pool2d", "max_pool2d_forward", x.dtype)
        for_each(kernel, y.size, x, y, argmax, y.size, *_geometry(at, x.shape))
        return y, (argmax, x.shape) if mem.needs[0] else None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        argmax, x_shape = saved
        gx = mem.empty(x_shape, gy.dtype)
        kernel = op_kernel("max_pool2d", "max_pool2d_backward", gy.dtype)
        geometry = _geometry(self._windows(x_shape), x_shape)
        for_each(kernel, gx.size, gy, argmax, gx, gx.size, *geometry)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def _geometry(at: Windows2d, x: Shape) -> tuple[int, ...]:
    """H W OH OW KH KW, strides and padding before, in the order in which the kernels take them."""
    return (*x[2:], *of_both_axes(at, "out", "kernel", "stride", "before"))


def _offsets(at: Windows2d, x: Shape) -> Any:
    """For each kernel offset (i, j): the windows in which it is a real pixel, and those pixels."""
    rows, columns = at
    for i in range(rows.kernel):
        to_rows, from_rows = rows.inside(i, x[2])
        for j in range(columns.kernel):
            to_columns, from_columns = columns.inside(j, x[3])
            everything = slice(None)
            yield (
                i,
                j,
                (everything, everything, to_rows, to_columns),
                (everything, everything, from_rows, from_columns),
            )


def _corners(at: Windows2d, x: Shape) -> Array:
    """The position h * W + w of each window's first pixel, which may lie in the padding."""
    rows, columns = at
    top = np.arange(rows.out, dtype=np.int32) * np.int32(rows.stride) - np.int32(rows.before)
    left = np.arange(columns.out, dtype=np.int32) * np.int32(columns.stride)
    return top[:, None] * np.int32(x[3]) + left - np.int32(columns.before)  # (OH, OW)


def _first_inside(at: Windows2d, x: Shape) -> Array:
    """The number of the first kernel offset of each window that is a real pixel, (OH, OW)."""
    rows, columns = at
    top = np.maximum(rows.before - np.arange(rows.out) * rows.stride, 0)
    left = np.maximum(columns.before - np.arange(columns.out) * columns.stride, 0)
    return top[:, None] * columns.kernel + left


def max_pool2d(
    x: Operand,
    kernel_size: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair | str = 0,
    *,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window of an image.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        float32 or float64.
    kernel_size : int or (vertical, horizontal)
    stride : int or (vertical, horizontal), optional
        The kernel size where it is not given: windows side by side.
    padding : int, (vertical, horizontal) or "same"
        At most half the kernel size.  Padding never wins, not even against -inf or NaN.
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
    ArgumentError
        A kernel size or stride below 1, or padding larger than half the kernel.

    References
    ----------
    Ranzato, Huang, Boureau, LeCun, "Unsupervised learning of invariant feature hierarchies",
    CVPR 2007.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(16.0).reshape(1, 1, 4, 4)
    >>> tg.max_pool2d(x, 2).value[0, 0]
    array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    kernel = pair("max_pool2d", "kernel_size", kernel_size)
    step = kernel if stride is None else pair("max_pool2d", "stride", stride)
    pad = padding_2d("max_pool2d", padding)
    if not isinstance(pad, str) and (2 * pad[0] > kernel[0] or 2 * pad[1] > kernel[1]):
        raise ArgumentError(
            "max_pool2d",
            "padding",
            f"at most half of kernel_size {kernel}",
            pad,
            "a window of padding alone has no maximum; pad with tg.pad instead",
        )
    return MaxPool2d(kernel, step, pad, bool(ceil_mode))(x)
