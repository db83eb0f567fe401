"""Convolution, ReLU and max-pooling as one op: only the pooled values are ever written.

    N C H W    batch, channels, height, width        D       filters
    OH OW      output size of the convolution        PH PW   OH // pool, OW // pool

    y[n, d, u, v] = max(0, max over i, j < pool of c[n, d, u * pool + i, v * pool + j])
    c             = conv2d(x, w, b)
    g             = gy at the argmax of each window, 0 everywhere else
    gx, gw, gb    = the gradients of conv2d for the upstream gradient g

The same numbers as max_pool2d(relu(conv2d(x, w, b)), pool): the first maximum of a window wins, a
NaN counts as larger than everything, and where ReLU gives 0 no gradient comes back.  Forward keeps
one byte for each window: which of its pool * pool positions has won, or 255 for none.  The kernels
never write c nor g, which are pool^2 times as large as y.

Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
networks", NIPS 2012, for the three in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.cuda import Out, blocks, op_kernel
from tinygraph.errors import ArgumentError, ShapeError, explain
from tinygraph.memory import Memory
from tinygraph.op import Gradients
from tinygraph.ops.conv2d import Conv2d
from tinygraph.ops.gemm import column_sums
from tinygraph.ops.launch import THREADS, grid_of
from tinygraph.shapes import Array, Pair, Shape, Spec, padding_2d, pair
from tinygraph.tensor import Operand, Tensor

NONE = 255  # the argmax of a window whose maximum ReLU has made 0
POOLS = (2, 3)  # compiled into the kernels

# The same numbers stand in cuda/conv2d_relu_max_pool2d.cuh.
BLOCK_FILTERS = 32
TAPS = 9
CHANNELS = 4

MOST_BLOCKS = 65535  # on the second axis of a grid
ENOUGH_BLOCKS = 1024  # no further chunks of images beyond so many
FEWEST_IMAGES = 16  # of a chunk: its sums are written, and read again


@dataclass(frozen=True)
class Conv2dReluMaxPool2d(Conv2d):
    pool: int = 2

    def infer(self, x: Spec, w: Spec, b: Spec | None = None) -> Spec:
        n, d, oh, ow = super().infer(x, w, b).shape
        if not d:
            raise ShapeError(explain(self.name, "w", "at least one filter", w.shape))
        if min(oh, ow) < self.pool:
            raise ShapeError(
                explain(self.name, "x", f"a convolution of at least {self.pool}x{self.pool}",
                        f"{oh}x{ow}", "use a larger image, more padding or a smaller pool")
            )  # fmt: skip
        return Spec((n, d, oh // self.pool, ow // self.pool), x.dtype)

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        c, saved = super().forward(mem, x, w, b)
        windows = self._windows_of(c)
        y, argmax = mem.empty(windows[0].shape, x.dtype), mem.zeros(windows[0].shape, np.uint8)
        y[...] = windows[0]
        for position, candidate in enumerate(windows[1:], 1):
            wins = (candidate > y) | (np.isnan(candidate) & ~np.isnan(y))
            np.copyto(y, candidate, where=wins)
            argmax[wins] = position
        dead = y <= 0  # ReLU and the maximum commute
        y[dead] = 0
        argmax[dead] = NONE
        return y, (argmax, c.shape, saved) if any(mem.needs) else None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        argmax, shape, saved = saved
        g = mem.zeros(shape, gy.dtype)
        for position, part in enumerate(self._windows_of(g)):
            np.copyto(part, gy, where=argmax == position)
        return super().backward(mem, g, saved, needs)

    def _windows_of(self, c: Array) -> list[Array]:
        """The positions of all windows, row by row, as views (N, D, PH, PW) of c (N, D, OH, OW)."""
        (n, d, oh, ow), pool = c.shape, self.pool
        ph, pw = oh // pool, ow // pool
        cut = c[:, :, : ph * pool, : pw * pool].reshape(n, d, ph, pool, pw, pool)
        return [cut[:, :, :, i, :, j] for i in range(pool) for j in range(pool)]

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        y = mem.empty(self._pooled(x.shape, w.shape), x.dtype)
        argmax = mem.empty(y.shape if any(mem.needs) else (0,), np.uint8)
        bias = mem.zeros((0,), x.dtype) if b is None else b
        if y.size:
            kernel = self._kernel("conv2d_relu_max_pool2d", "forward", x.dtype)
            grid = blocks(len(w), BLOCK_FILTERS), min(len(x), MOST_BLOCKS)
            kernel(grid, THREADS, x, w, bias, Out(y), argmax, *self._geometry(x.shape, w.shape))
        return y, (argmax, x, w) if any(mem.needs) else None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        argmax, x, w = saved
        wanted = needs + (False,) * (3 - len(needs))
        geometry = self._geometry(x.shape, w.shape)
        gx = gw = gb = None
        if wanted[0]:
            gx = mem.empty(x.shape, x.dtype)
            kernel = self._kernel("conv2d_relu_max_pool2d", "input_gradient", x.dtype)
            self._launch_input_gradient(kernel, gx, gy, argmax, w, gx, *geometry)
        if wanted[1] or wanted[2]:
            turns = max(blocks(w[0].size, TAPS), 1)
            per_chunk, chunks = self._chunks(len(x), len(w) * turns, gy.shape[2] * gy.shape[3])
            gw, gw_parts = gradient_parts(mem, w.shape, chunks, x.dtype, wanted[1])
            gb, gb_parts = gradient_parts(mem, w.shape[:1], chunks, x.dtype, wanted[2])
            kernel = self._kernel("conv2d_relu_max_pool2d", "backward", x.dtype)
            kernel((len(w), chunks, turns), THREADS, gy, x, argmax, gw_parts, gb_parts, *geometry,
                   per_chunk)  # fmt: skip
            for parts, total in ((gw_parts, gw), (gb_parts, gb)):
                add_parts(mem, parts, total)
        return (gx, gw, gb)[: len(needs)]

    # ---- what the kernels are launched with; the op with a linear layer launches such kernels too

    def _pooled(self, x: Shape, w: Shape) -> Shape:
        rows, columns = self._windows(x, w)
        return x[0], w[0], rows.out // self.pool, columns.out // self.pool

    def _kernel(self, stem: str, function: str, dtype: Any) -> Any:
        return op_kernel(stem, f"{stem}_{function}", dtype, POOL=self.pool)

    def _geometry(self, x: Shape, w: Shape) -> tuple[int, ...]:
        """N C H W D KH KW PH PW SH SW top left DH DW, as all these kernels take them."""
        rows, columns = self._windows(x, w)
        return (*x, w[0], w[2], w[3], *self._pooled(x, w)[2:], rows.stride, columns.stride,
                rows.before, columns.before, rows.dilation, columns.dilation)  # fmt: skip

    def _launch_input_gradient(self, kernel: Any, gx: Array, *arguments: Any) -> None:
        if gx.size:
            n, c, h, w = gx.shape
            kernel((grid_of(n * h * w), blocks(c, CHANNELS)), THREADS, *arguments)

    def _chunks(self, images: int, busy: int, windows: int) -> tuple[int, int]:
        """Images of a chunk, and chunks: enough blocks, beside those that are busy without them."""
        chunks = max(min(ENOUGH_BLOCKS // busy, images // FEWEST_IMAGES), 1)
        per_chunk = max(min(blocks(images, chunks), (2**31 - 1 - THREADS) // windows), 1)
        return per_chunk, max(blocks(images, per_chunk), 1)


def gradient_parts(
    mem: Memory, shape: Shape, chunks: int, dtype: Any, wanted: bool
) -> tuple[Array | None, Array]:
    """A gradient, and its part for each chunk; neither, and a null pointer, where not wanted."""
    if not wanted:
        return None, mem.empty((0,), dtype)
    total = mem.empty(shape, dtype)
    return total, mem.empty((chunks, *shape), dtype) if chunks > 1 else total[None]


def add_parts(mem: Memory, parts: Array, total: Array | None) -> None:
    """Sum over the chunks, in their order; one chunk is the sum itself."""
    if total is not None and len(parts) > 1:
        column_sums(mem, parts.reshape(len(parts), total.size), total.reshape(-1))


def conv2d_relu_max_pool2d(
    x: Operand, w: Operand, b: Operand | None = None, stride: int | Pair = 1,
    padding: int | Pair | str = 0, dilation: int | Pair = 1, *, pool: int = 2,
) -> Tensor:  # fmt: skip
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
    Made for few input channels, where memory is what limits.  On many channels the three ops one
    by one do better: backward reads its upstream gradient once for every nine numbers of a filter.

    References
    ----------
    Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
    networks", NIPS 2012.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(-8.0, 8.0).reshape(1, 1, 4, 4)
    >>> tg.conv2d_relu_max_pool2d(x, tg.ones((1, 1, 1, 1))).value[0, 0]
    array([[0., 0.],
           [5., 7.]], dtype=float32)
    """
    settings = convolution("conv2d_relu_max_pool2d", stride, padding, dilation, pool)
    op = Conv2dReluMaxPool2d(*settings, pool=pool)
    return op(x, w) if b is None else op(x, w, b)


def convolution(
    op: str, stride: int | Pair, padding: int | Pair | str, dilation: int | Pair, pool: int
) -> tuple[Pair, Pair | str, Pair, int]:
    """Stride, padding, dilation and groups of the convolution; ArgumentError for another pool."""
    if pool not in POOLS or isinstance(pool, bool):
        raise ArgumentError(
            explain(op, "pool", "2 or 3", repr(pool),
                    "tg.max_pool2d(tg.relu(tg.conv2d(x, w, b)), ...) pools in any way")
        )  # fmt: skip
    return pair(op, "stride", stride), padding_2d(op, padding), pair(op, "dilation", dilation), 1
