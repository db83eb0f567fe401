"""Interpolate: an image, or a sequence, read at other places than its pixels.

    N C H W    batch, channels, height, width        OH OW    output size

    s(u) = the place in the input, on one axis, that output u reads; a = floor(s), t = s - a

    nearest          s = u * H / OH                    y[u] = x[a]
    nearest-exact    s = (u + 1/2) * H / OH            y[u] = x[a]
    linear           s = (u + 1/2) * H / OH - 1/2      y[u] = (1 - t) * x[a] + t * x[a + 1]
    align_corners    s = u * (H - 1) / (OH - 1)         (of linear alone, in the place of its s)

    gx[h] = sum over the u that read h of their share of gy[u]

Places before the first pixel and behind the last one read these.  Bilinear is linear along columns
of what is linear along rows.  With a scale factor f in the place of a size, OH = floor(H * f), and
1 / f stands for H / OH; but an axis that keeps its size, OH = H, is copied whatever f is.

Source: Keys, "Cubic convolution interpolation for digital image processing", IEEE Transactions on
Acoustics, Speech, and Signal Processing 1981 (linear as the case of order one).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen, number, one_of, whole
from tinygraph.cuda import op_kernel
from tinygraph.engine import Array, Memory, Operand, Pair, Shape, Spec, Tensor, as_tensor
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import for_each, require_images
from tinygraph.ops.shaping.reshape import squeeze, unsqueeze

NEAREST = ("nearest", "nearest-exact")
MODES = (*NEAREST, "linear", "bilinear")


class Places(NamedTuple):
    """The places that outputs read on one axis: s(u) = (u + before) * by / over - after."""

    by: float
    over: float
    before: float
    after: float

    def read(self, size: int, out: int) -> tuple[Array, Array]:
        """For each output, the pixel at or before its place, and how far behind that this lies."""
        at = np.maximum((np.arange(out) + self.before) * self.by / self.over - self.after, 0)
        pixel = np.minimum(np.floor(at), size - 1)
        return pixel.astype(np.intp), at - pixel


@frozen
class Interpolate(Op):
    mode: str
    size: Pair | None  # of the output; or
    scale: tuple[float, float] | None
    align_corners: bool

    def _out(self, image: Shape) -> Pair:
        if self.size is not None:
            return self.size
        high, wide = (math.floor(n * f) for n, f in zip(image[2:], self.scale or (), strict=True))
        return high, wide

    def _places(self, image: Shape) -> tuple[Places, Places]:
        rows, columns = (self._of_axis(a, image[2 + a], self._out(image)[a]) for a in (0, 1))
        return rows, columns

    def _of_axis(self, axis: int, size: int, out: int) -> Places:
        if self.align_corners:
            return Places(size - 1, max(out - 1, 1), 0, 0)
        middle = 0.0 if self.mode == "nearest" else 0.5
        by, over = (size, out) if self.scale is None or size == out else (1, self.scale[axis])
        return Places(by, over, middle, 0.0 if self.mode in NEAREST else middle)

    def infer(self, x: Spec) -> Spec:
        require_images(self.name, x, empty=False)
        out = self._out(x.shape)
        if min(out) < 1:
            expected = "an output of at least one pixel"
            raise ShapeError(self.name, "scale_factor", expected, f"{out} of x {x.shape}")
        return Spec((*x.shape[:2], *out), x.dtype)

    def _reads(self, image: Shape, dtype: np.dtype[Any]) -> list[tuple[int, Array, Array]]:
        """For both axes: its number, the pixels that outputs read, and the share of the next."""
        both = []
        for axis, places, out in zip((2, 3), self._places(image), self._out(image), strict=True):
            pixel, share = places.read(image[axis], out)
            share = np.zeros(out) if self.mode in NEAREST else share
            both.append((axis, pixel, share.astype(dtype)))
        return both

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = x
        for axis, pixel, share in self._reads(x.shape, x.dtype):
            size = x.shape[axis]
            t = share.reshape(-1, *(1,) * (3 - axis))
            out = mem.empty((*y.shape[:axis], len(pixel), *y.shape[axis + 1 :]), x.dtype)
            np.multiply(np.take(y, pixel, axis), 1 - t, out=out)
            if self.mode not in NEAREST:
                out += np.take(y, np.minimum(pixel + 1, size - 1), axis) * t
            y = out
        return y, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        for axis, pixel, share in reversed(self._reads(shape, gy.dtype)):
            size = shape[axis]
            t = share.reshape(-1, *(1,) * (3 - axis))
            gx = mem.zeros((*gy.shape[:axis], size, *gy.shape[axis + 1 :]), gy.dtype)
            _gather(gx, gy * (1 - t), pixel, axis)
            if self.mode not in NEAREST:
                _gather(gx, gy * t, np.minimum(pixel + 1, size - 1), axis)
            gy = gx
        return (gy,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        y = mem.empty((*x.shape[:2], *self._out(x.shape)), x.dtype)
        self._launch("forward", x.shape, y.size, x, y)
        return y, x.shape

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        self._launch("backward", shape, gx.size, gy, gx)
        return (gx,)

    def _launch(self, direction: str, image: Shape, elements: int, *arrays: Array) -> None:
        rows, columns = self._places(image)
        nearest = int(self.mode in NEAREST)
        kernel = op_kernel("interpolate", f"interpolate_{direction}", arrays[0].dtype)
        numbers = (*image[2:], *self._out(image), nearest)
        places = (rows.by, rows.over, columns.by, columns.over, rows.before, rows.after)
        for_each(kernel, elements, *arrays, elements, *numbers, *map(float, places))

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


def _gather(gx: Array, gy: Array, pixel: Array, axis: int) -> None:
    """Add to each pixel what the outputs send that read it: these are neighbours."""
    first = np.flatnonzero(np.diff(pixel, prepend=-1))
    at: tuple[Any, ...] = (*[slice(None)] * axis, pixel[first])
    gx[at] += np.add.reduceat(gy, first, axis)


def interpolate(
    x: Operand,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images, or sequences, of another size.

    Parameters
    ----------
    x : Tensor (N, C, H, W) or (N, C, L)
        float32 or float64.
    size : int or (OH, OW), optional
        The size of the output; an int for both axes.
    scale_factor : float or (vertical, horizontal), optional
        How many times as large the output is, in the place of `size`.  An axis that keeps its size
        is copied, as of 7 pixels and 1.1.
    mode : {"nearest", "nearest-exact", "linear", "bilinear"}
        The pixel at or before a place, the pixel that it lies in, or the two (of images: four)
        around it; linear for sequences, bilinear for images.
    align_corners : bool, optional
        For linear and bilinear: the middles of the corner pixels of both are the same place; else
        the corners of their outermost pixels are.
    recompute_scale_factor : bool, optional
        With `scale_factor`: it gives the size of the output alone; places follow from the sizes.
    antialias : False
        Pixels between those that are read have no part.

    Returns
    -------
    Tensor (N, C, OH, OW) or (N, C, OL)
        OH = floor(H * scale_factor) where that is given.

    Raises
    ------
    ShapeError
        `x` has not three or four axes, or no pixel, or so few that none is left.
    DtypeError
        `x` is not of a float dtype.
    ArgumentError
        Both or neither of `size` and `scale_factor`, or one that is no number above 0 for each
        axis; an unknown mode, or one for another number of axes; `align_corners` with nearest;
        `recompute_scale_factor` with a size; `antialias`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([[[[1.0, 3.0]]]])
    >>> tg.interpolate(x, scale_factor=2).value[0, 0]
    array([[1., 1., 3., 3.],
           [1., 1., 3., 3.]], dtype=float32)
    >>> tg.interpolate(x, (1, 3), mode="bilinear", align_corners=True).value[0, 0]
    array([[1., 2., 3.]], dtype=float32)
    """
    name, node = "interpolate", as_tensor(x)
    one_of(name, "mode", mode, MODES)
    if node.ndim not in (3, 4):
        got = f"{node.ndim} axes, shape {node.shape}"
        raise ShapeError(name, "x", "3 axes (N, C, L) or 4 axes (N, C, H, W)", got)
    axes = node.ndim - 2
    if mode == ("bilinear", "linear")[axes - 1]:
        raise ArgumentError(name, "mode", "linear for (N, C, L), bilinear for images", repr(mode))
    if align_corners and mode in NEAREST:
        raise ArgumentError(name, "align_corners", f"None or False for {mode}", repr(align_corners))
    if antialias:
        way_out = "an average first: tg.avg_pool2d, or tg.adaptive_avg_pool2d"
        raise ArgumentError(name, "antialias", "False", True, way_out)
    if (size is None) == (scale_factor is None):
        got = "neither" if size is None else "both"
        raise ArgumentError(name, "size", "size, or scale_factor in its place", got)
    sizes: Any = None
    scales: Any = None
    if recompute_scale_factor and size is not None:
        raise ArgumentError(name, "recompute_scale_factor", "False with a size", True)
    if size is not None:
        each = _each("size", size, axes)
        sizes = (*(1,) * (2 - axes), *[whole(name, "size", n) for n in each])
    else:
        each = _each("scale_factor", scale_factor, axes)
        scales = (*(1.0,) * (2 - axes), *[number(name, "scale_factor", f, above=0) for f in each])
        if recompute_scale_factor:
            image = (*(1,) * (2 - axes), *node.shape[2:])
            sizes = tuple([math.floor(n * f) for n, f in zip(image, scales, strict=True)])
            scales = None
    op = Interpolate(mode, sizes, scales, bool(align_corners))
    return op(node) if axes == 2 else squeeze(op(unsqueeze(node, 2)), 2)


def _each(argument: str, value: Any, axes: int) -> tuple[Any, ...]:
    """One value for each axis."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes
    if len(given) != axes:
        raise ArgumentError("interpolate", argument, f"a number, or {axes} of them", repr(value))
    return given
