"""Convolution, ReLU and max-pooling as one op: only the pooled values are ever written.

    N C H W    batch, channels, height, width        D       filters
    OH OW      output size of the convolution        PH PW   OH // pool, OW // pool

    y[n, d, u, v] = max(0, max over i, j < pool of c[n, d, u * pool + i, v * pool + j])
    c             = conv2d(x, w, b)
    g             = gy at the argmax of each window, 0 everywhere else
    gx, gw, gb    = the gradients of conv2d for the upstream gradient g

The same numbers as max_pool2d(relu(conv2d(x, w, b)), pool): the first maximum of a window wins, a
NaN counts as larger than everything, and where ReLU gives 0 no gradient comes back.  Forward keeps
one byte for each window: which of its pool * pool positions has won, or 255 for none.  c and g,
which are pool^2 times as large as y, are never written as a whole.  numpy goes block by block, and
in a block position by position (pooling_phases.py): c at one position of all windows is as large
as y, and the largest so far is compared with the next.  b and ReLU come after the maximum, with
which they commute, on a quarter of the elements or fewer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, ShapeError, frozen
from tinygraph.cuda import Kernel, Out, blocks, op_kernel
from tinygraph.engine import Array, Gradients, Memory, Needs, Operand, Pair, Shape, Spec, Tensor
from tinygraph.ops.common import THREADS, grid_of
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.pooling_phases import (
    BiasGradient,
    CorrelatedInputGradient,
    InputGradient,
    PartGradient,
    PhaseColumns,
    PoolingPhases,
    WeightGradient,
    matrix,
    rows_of_filters,
)
from tinygraph.ops.windows.single_channel_stage import SingleChannelStage, sum_parts
from tinygraph.ops.windows.windows import sliding

NONE = 255  # the argmax of a window whose maximum ReLU has made 0
POOLS = (2, 3)  # compiled into the kernels

# The same numbers stand in conv2d_relu_max_pool2d.cu.
BLOCK_FILTERS = 32
TAPS = 9
CHANNELS = 4

MOST_BLOCKS = 65535  # on the second axis of a grid
ENOUGH_BLOCKS = 1024  # no further chunks of images beyond so many
FEWEST_IMAGES = 16  # of a chunk: its sums are written, and read again


@frozen
class Conv2dReluMaxPool2d(Conv2d):
    pool: int = 2

    def infer(self, x: Spec, w: Spec, b: Spec | None = None) -> Spec:
        n, d, oh, ow = super().infer(x, w, b).shape
        if not d:
            raise ShapeError(self.name, "w", "at least one filter", w.shape)
        if min(oh, ow) < self.pool:
            expected = f"a convolution of at least {self.pool}x{self.pool}"
            way_out = "use a larger image, more padding or a smaller pool"
            raise ShapeError(self.name, "x", expected, f"{oh}x{ow}", way_out)
        return Spec((n, d, oh // self.pool, ow // self.pool), x.dtype)

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        keep, phases = any(mem.needs), phases_of(self, x.shape, w.shape, x.itemsize)
        y = mem.empty(self._pooled(x.shape, w.shape), x.dtype)
        argmax = mem.empty(y.shape if keep else (0,), np.uint8)
        columns = PhaseColumns(mem, phases, x)
        weights, bias = rows_of_filters(mem, w), mem.zeros((len(w), 1), x.dtype)
        if b is not None:
            bias += b[:, None]  # to 0: the sum is not -0, and no sum with it is
        size = len(w) * phases.first.cells
        maps = [mem.empty((size,), x.dtype) for _ in range(2)]
        positions = [mem.empty((size,), np.uint8) for _ in range(3 if keep else 0)]
        for block in phases.blocks():
            best, other = (matrix(m, len(w), block.cells) for m in maps)
            winner = [matrix(m, len(w), block.cells) for m in positions]
            columns.gather(block)
            _largest(weights, columns, self.pool, best, other, winner)
            if keep and np.isnan(best.max()):
                _largest(weights, columns, self.pool, best, other, winner, has_nan=True)
            best += bias  # it commutes with the maximum, and so does ReLU
            shape = len(w), *block.shape
            if keep:
                dead = np.less_equal(best, 0, out=winner[1].view(bool)).view(np.int8)
                winner[0] |= np.negative(dead, out=dead).view(np.uint8)  # -1 is 255, NONE
                block.of(argmax)[...] = winner[0].reshape(shape)
            other[...] = 0  # numpy's maximum of two arrays is faster than that with a number
            np.maximum(best.reshape(shape), other.reshape(shape), out=block.of(y))
        return y, (argmax, x, w) if keep else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        argmax, x, w = saved
        phases = phases_of(self, x.shape, w.shape, x.itemsize)
        by_map = CorrelatedInputGradient.fits(phases)
        of_input = CorrelatedInputGradient if by_map else InputGradient
        kinds: list[type[PartGradient]] = [of_input, WeightGradient, BiasGradient]
        parts = [
            kind(mem, phases, x, w) if needed else None
            for kind, needed in zip(kinds, needs, strict=False)
        ]
        wanted = [part for part in parts if part is not None]
        size = len(w) * phases.first.cells
        maps = [mem.empty((size,), x.dtype) for _ in range(2)]
        bytes_ = [mem.empty((size,), np.uint8) for _ in range(2)]
        for block in phases.blocks():
            g, upstream = (matrix(m, len(w), block.cells) for m in maps)
            winner, wins = (matrix(m, len(w), block.cells) for m in bytes_)
            upstream.reshape(len(w), *block.shape)[...] = block.of(gy)
            winner.reshape(len(w), *block.shape)[...] = block.of(argmax)
            for part in wanted:
                part.begin(block)
            for position in range(self.pool**2):
                _route(upstream, winner, position, wins.view(bool), g)
                for part in wanted:
                    part.add(g, *divmod(position, self.pool))
            for part in wanted:
                part.end()
        return tuple([None if part is None else part.sum() for part in parts])

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        y = mem.empty(self._pooled(x.shape, w.shape), x.dtype)
        argmax = mem.empty(y.shape if any(mem.needs) else (0,), np.uint8)
        bias = mem.zeros((0,), x.dtype) if b is None else b
        stage = self.single_channel_stage(x.shape, w.shape)
        if y.size and stage:
            stage.forward(x, w, bias, y, argmax)
        elif y.size:
            kernel = self._kernel("forward", x.dtype)
            grid = blocks(len(w), BLOCK_FILTERS), min(len(x), MOST_BLOCKS)
            kernel(grid, THREADS, x, w, bias, Out(y), argmax, *self._geometry(x.shape, w.shape))
        return y, (argmax, x, w) if any(mem.needs) else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        argmax, x, w = saved
        wanted = needs + (False,) * (3 - len(needs))
        geometry = self._geometry(x.shape, w.shape)
        gx = gw = gb = None
        if wanted[0]:
            gx = mem.empty(x.shape, x.dtype)
            if gx.size:
                n, c, h, width = gx.shape
                kernel = self._kernel("input_gradient", x.dtype)
                grid = grid_of(n * h * width), blocks(c, CHANNELS)
                kernel(grid, THREADS, gy, argmax, w, gx, *geometry)
        if wanted[1] or wanted[2]:
            stage = self.single_channel_stage(x.shape, w.shape) if gy.size else None
            turns = max(blocks(w[0].size, TAPS), 1)
            if stage:
                per_chunk, chunks = stage.chunks(x.dtype)
            else:
                busy, windows = len(w) * turns, gy.shape[2] * gy.shape[3]
                per_chunk, chunks = self._chunks(len(x), busy, windows)
            gw, gw_parts = gradient_parts(mem, w.shape, chunks, x.dtype, wanted[1])
            gb, gb_parts = gradient_parts(mem, w.shape[:1], chunks, x.dtype, wanted[2])
            if stage:
                stage.backward(gy, x, argmax, gw_parts, gb_parts, per_chunk)
            else:
                kernel = self._kernel("backward", x.dtype)
                arrays = gy, x, argmax, gw_parts, gb_parts
                kernel((len(w), chunks, turns), THREADS, *arrays, *geometry, per_chunk)
            sum_parts(mem, (gw_parts, gw), (gb_parts, gb))
        return (gx, gw, gb)[: len(needs)]

    # ---- what the kernels are launched with

    def _pooled(self, x: Shape, w: Shape) -> Shape:
        oh, ow = self._windows(x, w).out
        return x[0], w[0], oh // self.pool, ow // self.pool

    def _kernel(self, function: str, dtype: Any) -> Kernel:
        stem = "conv2d_relu_max_pool2d"
        return op_kernel(stem, f"{stem}_{function}", dtype, POOL=self.pool)

    def _geometry(self, x: Shape, w: Shape) -> tuple[int, ...]:
        """N C H W D KH KW PH PW SH SW top left DH DW, as all these kernels take them."""
        at = self._windows(x, w).numbers("stride", "before", "dilation")
        return (*x, w[0], *w[2:], *self._pooled(x, w)[2:], *at)

    def single_channel_stage(self, x: Shape, w: Shape) -> SingleChannelStage | None:
        """The stage for which there are kernels of their own, if this is one."""
        at = self._windows(x, w)
        if self.pool != 2 or at.numbers("stride", "before", "dilation") != (1, 1, 0, 0, 1, 1):
            return None
        if (at.out != (x[2] - 2, x[3] - 2)) or not SingleChannelStage.fits(x, w):
            return None  # the one: padding after the image alone
        return SingleChannelStage(x[0], x[2], x[3], w[0])

    def _chunks(self, images: int, busy: int, windows: int) -> tuple[int, int]:
        """Images of a chunk, and chunks: enough blocks, beside those that are busy without them."""
        chunks = max(min(ENOUGH_BLOCKS // busy, images // FEWEST_IMAGES), 1)
        per_chunk = max(min(blocks(images, chunks), (2**31 - 1 - THREADS) // windows), 1)
        return per_chunk, max(blocks(images, per_chunk), 1)


@lru_cache(maxsize=256)
def phases_of(op: Conv2dReluMaxPool2d, x: Shape, w: Shape, itemsize: int) -> PoolingPhases:
    """How numpy cuts the op's work; the same for the same shapes."""
    return PoolingPhases(x, op._windows(x, w), op.pool, w[0], itemsize)


def _largest(
    weights: Array,
    columns: PhaseColumns,
    pool: int,
    best: Array,
    other: Array,
    winner: list[Array],
    has_nan: bool = False,
) -> None:
    """The largest output of the convolution in each window, and which it is, (D, cells).

    best, other    D x cells of the dtype of the weights; the maximum is in `best`
    winner         none, or three of D x cells, uint8; the position of the maximum is in the first
    """
    np.matmul(weights, columns.of(0, 0), out=best)
    if winner:
        winner[0][...] = 0
    for position in range(1, pool * pool):
        np.matmul(weights, columns.of(*divmod(position, pool)), out=other)
        if winner:
            wins = np.greater(other, best, out=winner[1].view(bool))
            if has_nan:
                wins |= np.isnan(other) & ~np.isnan(best)
            np.multiply(winner[1], np.uint8(position), out=winner[2])
            np.maximum(winner[0], winner[2], out=winner[0])  # the positions come in order
        np.maximum(best, other, out=best)


def _route(gy: Array, argmax: Array, position: int, wins: Array, g: Array) -> None:
    """g = gy where the position has won, else 0; bit by bit, so that an infinite gy stays alone."""
    np.equal(argmax, position, out=wins)
    mask, bits = wins.view(np.int8), g.view(f"i{g.itemsize}")
    np.copyto(bits, np.negative(mask, out=mask))  # all bits, or none
    np.bitwise_and(bits, gy.view(bits.dtype), out=bits)


def gradient_parts(
    mem: Memory, shape: Shape, chunks: int, dtype: Any, wanted: bool
) -> tuple[Array | None, Array]:
    """A gradient, and its part for each chunk; neither, and a null pointer, where not wanted."""
    if not wanted:
        return None, mem.empty((0,), dtype)
    total = mem.empty(shape, dtype)
    return total, mem.empty((chunks, *shape), dtype) if chunks > 1 else total[None]


def conv2d_relu_max_pool2d(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
    *,
    pool: int = 2,
) -> Tensor:
    """Convolution, ReLU and max-pooling in one, `max_pool2d(relu(conv2d(x, w, b)), pool)`.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        Images; float32 or float64.
    w : Tensor (D, C, KH, KW)
        Filters, of the dtype of `x`.
    b : Tensor (D,), optional
        Bias.
    stride, padding, dilation
        Of the convolution, as for `conv2d`; there are no groups.
    pool : 2 or 3
        Size and stride of the pooling windows.  Rows and columns that fill no window are left out.

    Returns
    -------
    Tensor (N, D, OH // pool, OW // pool)
        OH, OW as for `conv2d`.

    Raises
    ------
    ShapeError
        The channels of `x`, `w` and `b` do not fit, or an image is too small for one window.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        Another `pool`; a stride, padding or dilation that `conv2d` refuses.

    Notes
    -----
    Made for few input channels, where memory is what limits; 3x3 filters on one channel, not
    padded, have kernels of their own.  On many channels the three ops one by one do better: in
    kernels backward reads its upstream gradient once for every nine numbers of a filter, in numpy
    conv2d has larger products.  So they do with a dilation that does not divide the stride, where
    windows share no columns.

    References
    ----------
    Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
    networks", NIPS 2012, for the three in a row.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(-8.0, 8.0).reshape(1, 1, 4, 4)
    >>> tg.conv2d_relu_max_pool2d(x, tg.ones((1, 1, 1, 1))).value[0, 0]
    array([[0., 0.],
           [5., 7.]], dtype=float32)
    """
    if pool not in POOLS or isinstance(pool, bool):
        way_out = "tg.max_pool2d(tg.relu(tg.conv2d(x, w, b)), ...) pools in any way"
        raise ArgumentError("conv2d_relu_max_pool2d", "pool", "2 or 3", repr(pool), way_out)
    settings = sliding("conv2d_relu_max_pool2d", stride, padding, dilation)
    op = Conv2dReluMaxPool2d(*settings, groups=1, pool=pool)
    return op(x, w) if b is None else op(x, w, b)
