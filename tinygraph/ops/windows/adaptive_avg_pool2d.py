"""Adaptive average pooling: an image cut into a given number of windows, the mean of each.

    N C H W    batch, channels, height, width
    OH OW      how many windows on each axis

    R[u] = { h : u * H / OH - 1 < h < (u + 1) * H / OH }    rows that window u touches
    D[u, v]    how many pixels window (u, v) has

    y[n, c, u, v]  = sum over h in R[u], w in R[v] of x[n, c, h, w] / D[u, v]     columns alike
    gx[n, c, h, w] = sum of gy[n, c, u, v] / D[u, v] over the windows with h in R[u], w in R[v]

Where OH does not divide H, neighbouring windows share a row.  Row h lies in window u exactly where
u * H < (h + 1) * OH and h * OH < (u + 1) * H: the same holds of h and u with H and OH exchanged,
so that one rule gives the rows of a window and the windows of a row.

Source: He, Zhang, Ren, Sun, "Spatial pyramid pooling in deep convolutional networks for visual
recognition", arXiv:1406.4729, section 2.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, frozen
from tinygraph.cuda import BoundLaunch, op_kernel
from tinygraph.engine import Array, Memory, Operand, Pair, Shape, Spec, Tensor, integer
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import add_parts, documented, on_elements, remembered, require_images
from tinygraph.ops.windows.global_avg_pool2d import GlobalAvgPool2d
from tinygraph.ops.windows.sequences import OfSequences, along

OutputSize = tuple["int | None", "int | None"]  # None: as many windows as pixels


@frozen
class AdaptiveAvgPool2d(Op):
    output_size: OutputSize

    def _out(self, image: Shape) -> Pair:
        rows, columns = self.output_size
        return rows or image[2], columns or image[3]

    def infer(self, x: Spec) -> Spec:
        require_images(self.name, x, empty=False)
        return Spec((*x.shape[:2], *self._out(x.shape)), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        high, wide = self._out(x.shape)
        y = _sums(mem, _sums(mem, x, 2, high), 3, wide)
        y /= _counts(x.shape[2:], (high, wide), x.dtype)
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        share = mem.empty(gy.shape, gy.dtype)  # what each pixel of a window receives
        np.divide(gy, _counts(shape[2:], gy.shape[2:], gy.dtype), out=share)
        return (_sums(mem, _sums(mem, share, 3, shape[3]), 2, shape[2]),)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty((*x.shape[:2], *self._out(x.shape)), x.dtype)
        if y.size:
            _launch("forward", x.shape, y.shape, x.dtype)(x, y)
        return y, x.shape

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        if gx.size:
            _launch("backward", gy.shape, shape, gy.dtype)(gy, gx)
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


@remembered
def _launch(direction: str, source: Shape, target: Shape, dtype: Any) -> BoundLaunch:
    """One thread for each element of the target."""
    name, (n, c, *sizes) = "adaptive_avg_pool2d", target
    kernel = op_kernel(name, f"{name}_{direction}", dtype)
    elements = n * c * sizes[0] * sizes[1]
    return on_elements(kernel, elements, elements, *source[2:], *sizes)


def _windows(size: int, parts: int) -> tuple[Array, Array]:
    """Of each window on an axis of `size` pixels, its first pixel and the one behind its last."""
    window = np.arange(parts)
    return window * size // parts, -(-(window + 1) * size // parts)


def _sums(mem: Memory, x: Array, axis: int, parts: int) -> Array:
    """The sums of x (N, C, H, W) over the windows on axis 2 or 3, pixel by pixel."""
    begin, end = _windows(x.shape[axis], parts)
    y = mem.empty((*x.shape[:axis], parts, *x.shape[axis + 1 :]), x.dtype)
    to, source = y.swapaxes(axis, 0), x.swapaxes(axis, 0)  # (windows, ...), (pixels, ...)
    to[...] = source[begin]

    def pixel(k: int) -> tuple[Any, Array]:
        longer = begin + k < end
        return longer, source[begin[longer] + k]

    add_parts(to, pixel, 1, int(np.max(end - begin)))
    return y


def _counts(size: Shape, parts: Shape, dtype: np.dtype[Any]) -> Array:
    """How many pixels each window has, (OH, OW)."""
    high, wide = (np.subtract(*_windows(size[a], parts[a])[::-1]) for a in (0, 1))
    return np.outer(high, wide).astype(dtype)


@frozen
class OneWindow(GlobalAvgPool2d):
    """A single window: the whole image."""

    name = "adaptive_avg_pool2d"


@frozen
class AdaptiveAvgPool1d(OfSequences, AdaptiveAvgPool2d):
    """The same of sequences."""


adaptive = documented(
    """
    Raises
    ------
    ShapeError
        `x` has another number of axes, or no element on those that are pooled.
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        An output size below 1, or none.
    """
)


@adaptive
def adaptive_avg_pool2d(
    x: Operand, output_size: int | tuple[int | None, int | None] | None
) -> Tensor:
    """The means of as many windows of an image as are asked for.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        float32 or float64; images of any size.
    output_size : int or (OH, OW)
        How many windows there are on each axis; None: as many as pixels.

    Returns
    -------
    Tensor (N, C, OH, OW)
        Of windows that are as even as they can be; they share pixels where OH does not divide H.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(9.0).reshape(1, 1, 3, 3)
    >>> tg.adaptive_avg_pool2d(x, 2).value[0, 0]
    array([[2., 3.],
           [5., 6.]], dtype=float32)
    >>> tg.adaptive_avg_pool2d(x, (1, None)).value[0, 0]
    array([[3., 4., 5.]], dtype=float32)
    """
    name = "adaptive_avg_pool2d"
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size, output_size)
    if len(given) != 2:
        expected = "an int, or a pair of ints or None"
        raise ArgumentError(name, "output_size", expected, repr(output_size))
    rows, columns = (_parts(name, parts) for parts in given)
    return (OneWindow() if rows == columns == 1 else AdaptiveAvgPool2d((rows, columns)))(x)


@adaptive
def adaptive_avg_pool1d(x: Operand, output_size: int) -> Tensor:
    """The means of as many windows of a sequence as are asked for.

    Parameters
    ----------
    x : Tensor (N, C, L)
        float32 or float64; sequences of any length.
    output_size : int
        How many windows there are.

    Returns
    -------
    Tensor (N, C, output_size)
        Of windows that are as even as they can be; they share elements where it does not divide L.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.adaptive_avg_pool1d([[[1.0, 2.0, 3.0, 4.0, 5.0]]], 2).value[0, 0]
    array([2., 4.], dtype=float32)
    """
    return AdaptiveAvgPool1d(along("adaptive_avg_pool1d", "output_size", output_size, 1, 1))(x)


def _parts(op: str, size: int | None) -> int | None:
    """The number of windows on one axis."""
    if size is None:
        return None
    if (parts := integer(op, "output_size", size)) < 1:
        raise ArgumentError(op, "output_size", "at least 1", size)
    return parts
