"""Two-dimensional convolution (cross-correlation, as in every framework), as im2col + GEMM.

    N C H W    batch, input channels, height, width        G      groups
    O KH KW    output channels, kernel size                OH OW  output size
    P = OH*OW, K = (C/G)*KH*KW

    y[n, o, u, v] = b[o] + sum over c, i, j of w[o, c, i, j] * x[n, c, u*s + i*d - p, v*s + j*d - p]

With the windows of x as columns, for each sample and group: y = w @ cols, and therefore
    gw = sum over n of gy @ cols^T       gcols = w^T @ gy, gx = col2im(gcols)       gb = sum of gy

The kernels make the columns in shared memory, a panel at a time, and never write them out (implicit
GEMM); Im2colConv2d, the step before, has them in memory, as numpy does.  Where
`tg.set_float32_matmul_precision` lowers the precision, implicit GEMM runs on tensor cores, forward
and both gradients.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing", IWFHR 2006; Dumoulin, Visin, "A guide to convolution arithmetic", arXiv:1603.07285.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygraph.cuda import Kernel, Out, blocks, op_kernel
from tinygraph.errors import ArgumentError, ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.im2col import (
    Windows2d,
    fold,
    fold_kernel,
    of_both_axes,
    unfold,
    unfold_kernel,
    windows_2d,
)
from tinygraph.ops.shared.gemm import (
    MOST_BLOCKS,
    Axis,
    column_sums,
    gemm,
    tile_for,
    tile_grid,
)
from tinygraph.ops.shared.launch import THREADS
from tinygraph.precision import TENSOR_CORE_NUMBERS, get_float32_matmul_precision
from tinygraph.shapes import Array, Pair, Shape, Spec, padding_2d, pair, require_float, require_ndim
from tinygraph.tensor import Operand, Tensor

TILE = {
    "f": 128,
    "d": 64,
}  # rows and columns that a block of gemm_pipelined.cuh computes

SHORTEST_SUM = 1024  # of the weights' gradient: shorter sums are not cut
ENOUGH_BLOCKS = 256  # and no sum is cut where this many blocks work without it
MOST_CHUNKS = 64

CHUNK = 16384  # elements of one channel that one block sums for the bias's gradient


def _implicit_kernel(name: str, dtype: Any) -> Kernel:
    """A kernel of implicit GEMM; on tensor cores where a lower precision of float32 is chosen."""
    number = TENSOR_CORE_NUMBERS[get_float32_matmul_precision()] if dtype == np.float32 else 0
    macros = {"GEMM_MMA": number} if number else {}
    return op_kernel("conv2d_implicit", f"conv2d_implicit_{name}", dtype, **macros)


@frozen
class Conv2d(Op):
    stride: Pair
    padding: Pair | str
    dilation: Pair
    groups: int

    def _windows(self, x: Shape, w: Shape) -> Windows2d:
        return windows_2d(self.name, x, (w[2], w[3]), self.stride, self.padding, self.dilation)

    def infer(self, x: Spec, w: Spec, b: Spec | None = None) -> Spec:
        require_float(self.name, x=x, w=w, **({} if b is None else {"b": b}))
        require_ndim(self.name, "x", x, 4, "(N, C, H, W)")
        require_ndim(self.name, "w", w, 4, "(O, C/groups, KH, KW)")
        c, (o, c_group, kh, kw) = x.shape[1], w.shape
        if c != c_group * self.groups:
            raise ShapeError(
                self.name,
                "w",
                f"w.shape[1] * groups equal to the {c} channels of x",
                f"{c_group} * {self.groups} with w.shape {w.shape}, x.shape {x.shape}",
                "weights are (O, C/groups, KH, KW), images (N, C, H, W)",
            )
        if o % self.groups:
            raise ShapeError(self.name, "w", f"output channels that {self.groups} groups divide", o)
        if not kh or not kw:
            raise ShapeError(self.name, "w", "a kernel of at least 1x1", w.shape)
        if b is not None and b.shape != (o,):
            raise ShapeError(
                self.name,
                "b",
                f"shape ({o},), one for each output channel",
                b.shape,
                "reshape it, or pass b=None",
            )
        rows, columns = self._windows(x.shape, w.shape)
        return Spec((x.shape[0], o, rows.out, columns.out), x.dtype)

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        (n, c), (o, _, kh, kw), g = x.shape[:2], w.shape, self.groups
        at = self._windows(x.shape, w.shape)
        oh, ow = at[0].out, at[1].out
        cols = mem.empty((n, c * kh * kw, oh * ow), x.dtype)
        unfold(x, cols, at)
        cols = cols.reshape(n, g, c // g * kh * kw, oh * ow)  # (N, G, K, P)
        weights = w.reshape(g, o // g, c // g * kh * kw)  # (G, O/G, K)
        y = mem.empty((n, g, o // g, oh * ow), x.dtype)
        np.matmul(weights, cols, out=y)  # (N, G, O/G, P)
        y = y.reshape(n, o, oh, ow)
        if b is not None:
            y += b[:, None, None]
        return y, (x.shape, w, cols if len(mem.needs) > 1 and mem.needs[1] else None)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]) -> Gradients:
        x_shape, w, cols = saved
        (n, c), (o, _, kh, kw), g = x_shape[:2], w.shape, self.groups
        k, p = c // g * kh * kw, gy.shape[2] * gy.shape[3]
        gy = gy.reshape(n, g, o // g, p)  # (N, G, O/G, P)
        gx = gw = gb = None
        if needs[0]:
            gcols = mem.empty((n, g, k, p), gy.dtype)
            np.matmul(w.reshape(g, o // g, k).transpose(0, 2, 1), gy, out=gcols)
            gx = mem.empty(x_shape, gy.dtype)
            fold(gcols.reshape(n, g * k, p), gx, self._windows(x_shape, w.shape))
        if needs[1]:
            each = mem.empty((n, g, o // g, k), gy.dtype)
            np.matmul(gy, cols.transpose(0, 1, 3, 2), out=each)  # one product for each sample
            gw = mem.empty(w.shape, gy.dtype)
            np.sum(each, axis=0, out=gw.reshape(g, o // g, k))
        if len(needs) > 2 and needs[2]:
            gb = mem.empty((o,), gy.dtype)
            np.sum(gy.reshape(n, o, p), axis=(0, 2), out=gb)
        return (gx, gw, gb)[: len(needs)]

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        numbers = self._numbers(x.shape, w.shape)
        y = mem.empty((len(x), len(w), numbers[7], numbers[8]), x.dtype)
        if y.size:
            bias = mem.empty((0,), x.dtype) if b is None else b
            kernel = _implicit_kernel("forward", x.dtype)
            grid = self._tiles(x.dtype, len(w), y.size // len(w)), self.groups
            kernel(grid, THREADS, w, x, bias, Out(y), *numbers)
        return y, (x, w) if any(mem.needs) else None

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x, w = saved
        numbers = self._numbers(x.shape, w.shape)
        gx = gw = gb = None
        if needs[0]:
            gx = mem.empty(x.shape, gy.dtype)
            if gx.size:
                kernel = _implicit_kernel("input_gradient", gy.dtype)
                grid = self._tiles(gy.dtype, x.shape[1], gx.size // x.shape[1]), self.groups
                kernel(grid, THREADS, w, gy, Out(gx), *numbers)
        if needs[1]:
            gw = mem.empty(w.shape, gy.dtype)
            if gw.size:
                self._weight_gradient(mem, gy, x, gw, numbers)
        if len(needs) > 2 and needs[2]:
            gb = mem.empty((len(w),), gy.dtype)
            _bias_gradient(mem, gy, gb)
        return (gx, gw, gb)[: len(needs)]

    def _weight_gradient(
        self, mem: Memory, gy: Array, x: Array, gw: Array, numbers: tuple[int, ...]
    ) -> None:
        """A long sum over all images, cut where one block for each tile would be few."""
        tiles = self._tiles(gy.dtype, len(gw), gw[0].size * self.groups)
        length = len(gy) * gy.shape[2] * gy.shape[3]
        chunks = max(
            min(MOST_CHUNKS, length // SHORTEST_SUM, ENOUGH_BLOCKS // (tiles * self.groups)), 1
        )
        partial = mem.empty((chunks, gw.size), gw.dtype) if chunks > 1 else gw
        kernel = _implicit_kernel("weight_gradient", gy.dtype)
        kernel((tiles, self.groups * chunks), THREADS, gy, x, Out(partial), *numbers, chunks)
        if chunks > 1:
            column_sums(mem, partial, gw.reshape(-1))

    def _numbers(self, x: Shape, w: Shape) -> tuple[int, ...]:
        """N C H W O KH KW OH OW SH SW top left DH DW G, as the implicit kernels take them."""
        at = of_both_axes(self._windows(x, w), "out", "stride", "before", "dilation")
        return (*x, w[0], w[2], w[3], *at, self.groups)

    def _tiles(self, dtype: Any, rows: int, columns: int) -> int:
        """Tiles of one group's product, of all groups' rows and one group's columns."""
        return blocks(rows // self.groups, TILE[dtype.char]) * blocks(columns, TILE[dtype.char])

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries[0] and not any(carries[1:]) else None


@frozen
class Im2colConv2d(Conv2d):
    """conv2d with the columns of im2col written out: the readable step before implicit GEMM."""

    name = "conv2d"

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        (n, c), (o, _, kh, kw), g = x.shape[:2], w.shape, self.groups
        at = self._windows(x.shape, w.shape)
        m, k, p = o // g, c // g * kh * kw, at[0].out * at[1].out
        cols = mem.empty((n, g, k, p), x.dtype)
        unfold_kernel(x, cols, at)
        y = mem.empty((n, o, at[0].out, at[1].out), x.dtype)
        if b is None:
            gemm("nn", w, cols, y, m, p, k, [Axis(n, 0, g * k * p), Axis(g, m * k, k * p)])
        elif y.size:
            tile = tile_for(m, p)
            kernel = op_kernel("conv2d", "conv2d_forward", x.dtype, GEMM_TILE=tile)
            kernel(tile_grid(tile, m, p, n * g), THREADS, w, cols, b, Out(y), n, g, m, p, k)
        return y, (x.shape, w, cols if len(mem.needs) > 1 and mem.needs[1] else None)

    def backward_kernel(
        self, mem: Memory, gy: Array, saved: Any, needs: tuple[bool, ...]
    ) -> Gradients:
        x_shape, w, cols = saved
        (n, c), (o, _, kh, kw), g = x_shape[:2], w.shape, self.groups
        m, k, p = o // g, c // g * kh * kw, gy.shape[2] * gy.shape[3]
        gx = gw = gb = None
        if needs[0]:  # gcols[n, g] = w[g]^T @ gy[n, g]
            gcols = mem.empty((n, g, k, p), gy.dtype)
            gemm("tn", w, gy, gcols, k, p, m, [Axis(n, 0, o * p), Axis(g, m * k, m * p)])
            gx = mem.empty(x_shape, gy.dtype)
            fold_kernel(gcols, gx, self._windows(x_shape, w.shape))
        if needs[1]:  # gw[g] = sum over n of gy[n, g] @ cols[n, g]^T
            gw = mem.empty(w.shape, gy.dtype)
            groups, images = [Axis(g, m * p, k * p)], [Axis(n, o * p, g * k * p)]
            gemm("nt", gy, cols, gw, m, k, p, groups, images, mem)
        if len(needs) > 2 and needs[2]:
            gb = mem.empty((o,), gy.dtype)
            _bias_gradient(mem, gy, gb)
        return (gx, gw, gb)[: len(needs)]


def _bias_gradient(mem: Memory, gy: Array, gb: Array) -> None:
    """Sum gy (N, O, P) over N and P as a CUDA kernel: chunks of images, then the chunks."""
    n, o, p = gy.shape[0], gy.shape[1], gy.shape[2] * gy.shape[3]
    if not o:
        return
    images_per_chunk = max(1, CHUNK // max(p, 1), blocks(n, MOST_BLOCKS))
    chunks = max(blocks(n, images_per_chunk), 1)
    partial = mem.empty((chunks, o), gy.dtype) if chunks > 1 else gb
    kernel = op_kernel("conv2d", "conv2d_bias_gradient", gy.dtype)
    kernel((o, chunks), THREADS, gy, Out(partial), n, o, p, images_per_chunk)
    if chunks > 1:
        column_sums(mem, partial, gb)


ALGORITHMS = {"implicit": Conv2d, "im2col": Im2colConv2d}


def conv2d(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
    groups: int = 1,
    *,
    algorithm: str = "implicit",
) -> Tensor:
    """Two-dimensional convolution of images with a bank of filters.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        Images; float32 or float64.
    w : Tensor (O, C/groups, KH, KW)
        Filters, of the dtype of `x`.
    b : Tensor (O,), optional
        Bias.
    stride, dilation : int or (vertical, horizontal)
    padding : int, (vertical, horizontal) or "same"
        Zeros around the image; "same" gives an output of ceil(H / stride) x ceil(W / stride), with
        an odd row or column of zeros at the bottom or right.
    groups : int
        Cut the channels into that many groups, each convolved with its own share of the filters.
    algorithm : "implicit" or "im2col"
        How the kernels do it: with the windows gathered in shared memory, or written out and kept
        for backward, which needs KH * KW times the memory.  numpy always does the latter.

    Returns
    -------
    Tensor (N, O, OH, OW)
        OH = floor((H + 2 * padding - dilation * (KH - 1) - 1) / stride) + 1, OW likewise.

    Raises
    ------
    ShapeError
        The channels of `x`, `w`, `b` and `groups` do not fit, or the kernel is larger than the
        padded image.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        A stride below 1, a negative padding, an unknown padding mode or algorithm.

    References
    ----------
    Dumoulin, Visin, "A guide to convolution arithmetic for deep learning", arXiv:1603.07285.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, w = tg.ones((1, 1, 3, 3)), tg.ones((1, 1, 2, 2))
    >>> tg.conv2d(x, w).value[0, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    >>> tg.conv2d(x, w, padding="same").shape
    (1, 1, 3, 3)
    """
    if not isinstance(groups, (int, np.integer)) or groups < 1:
        raise ArgumentError("conv2d", "groups", "an int of at least 1", repr(groups))
    if algorithm not in ALGORITHMS:
        raise ArgumentError(
            "conv2d", "algorithm", " or ".join(map(repr, ALGORITHMS)), repr(algorithm)
        )
    op = ALGORITHMS[algorithm](
        pair("conv2d", "stride", stride),
        padding_2d("conv2d", padding),
        pair("conv2d", "dilation", dilation),
        int(groups),
    )
    return op(x, w) if b is None else op(x, w, b)
