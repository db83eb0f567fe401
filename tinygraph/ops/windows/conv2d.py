"""Two-dimensional convolution (cross-correlation, as in every framework), as im2col + GEMM.

    N C H W    batch, input channels, height, width        G      groups
    O KH KW    output channels, kernel size                OH OW  output size
    P = OH*OW, K = (C/G)*KH*KW

    y[n, o, u, v] = b[o] + sum over c, i, j of w[o, c, i, j] * x[n, c, u*s + i*d - p, v*s + j*d - p]

With the windows of x as columns, for each sample and group: y = w @ cols, and therefore
    gw = sum over n of gy @ cols^T       gcols = w^T @ gy, gx = col2im(gcols)       gb = sum of gy

numpy does so for a block of images at a time, whose columns stay in a cache, and makes them again
in backward: see convolution_blocks.py.  There are three steps of kernels, which `algorithm`
chooses:

    "im2col"           the columns are written to memory; then GEMM (gemm.cuh)
    "naive_implicit"   implicit GEMM: the columns are made in shared memory, a panel at a time;
                       KH * KW times less memory, but three divisions for each element
    "implicit"         places of elements in a table; tiles of 32, 64 or 128 filters; sums cut into
                       chunks where blocks are few

Where `tg.set_float32_matmul_precision` lowers the precision, implicit GEMM runs on tensor cores,
forward and both gradients.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing", IWFHR 2006; Dumoulin, Visin, "A guide to convolution arithmetic", arXiv:1603.07285.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from tinygraph.base import ArgumentError, ShapeError, frozen, whole
from tinygraph.base.precision import get_float32_matmul_precision
from tinygraph.cuda import Out, blocks, op_kernel
from tinygraph.engine import Array, Memory, Operand, Pair, Shape, Spec, Tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import THREADS, ChunkedLaunch, remembered, sum_over
from tinygraph.ops.common.arguments import padding_2d, require_bias, require_ndim
from tinygraph.ops.products.gemm import MOST_BLOCKS, Axis, gemm, tile_for, tile_grid
from tinygraph.ops.windows.convolution import (
    ConvolutionChoice,
    Sum,
    choose_convolution,
    convolution_launch,
)
from tinygraph.ops.windows.convolution_blocks import Convolution
from tinygraph.ops.windows.convolution_rows import layout_of
from tinygraph.ops.windows.im2col import fold_kernel, unfold_kernel
from tinygraph.ops.windows.sequences import OfSequences, along
from tinygraph.ops.windows.windows import Windows2d, sliding, windows_2d

CHUNK = 16384  # elements of one channel that one block sums for the bias's gradient


@frozen
class Conv2d(Op):
    stride: Pair
    padding: Pair | str
    dilation: Pair
    groups: int

    legends: ClassVar[dict[str, str]] = {"x": "(N, C, H, W)", "w": "(O, C/groups, KH, KW)"}
    naive: ClassVar[bool] = False  # the step of implicit GEMM before the last one

    def _windows(self, x: Shape, w: Shape) -> Windows2d:
        return windows_2d(self.name, x[2:], w[2:], self.stride, self.padding, self.dilation)

    def _product(self, x: Shape, w: Shape) -> tuple[int, ...]:
        """N, G, and M, K, P: rows, summed axis and columns of one group's product."""
        columns = math.prod(self._windows(x, w).out)
        return x[0], self.groups, w[0] // self.groups, math.prod(w[1:]), columns

    def infer(self, x: Spec, w: Spec, b: Spec | None = None) -> Spec:
        require_float(self.name, x=x, w=w, b=b)
        require_ndim(self.name, "x", x, 4, self.legends["x"])
        require_ndim(self.name, "w", w, 4, self.legends["w"])
        c, (o, c_group, kh, kw) = x.shape[1], w.shape
        if c != c_group * self.groups:
            expected = f"w.shape[1] * groups equal to the {c} channels of x"
            got = f"{c_group} * {self.groups} with w.shape {w.shape}, x.shape {x.shape}"
            way_out = f"weights are {self.legends['w']}, inputs {self.legends['x']}"
            raise ShapeError(self.name, "w", expected, got, way_out)
        if o % self.groups:
            raise ShapeError(self.name, "w", f"output channels that {self.groups} groups divide", o)
        if not kh or not kw:
            raise ShapeError(self.name, "w", "a kernel of at least 1x1", w.shape)
        require_bias(self.name, b, o)
        return Spec((x.shape[0], o, *self._windows(x.shape, w.shape).out), x.dtype)

    def forward(self, mem: Memory, x: Array, w: Array, b: Array | None = None) -> tuple[Array, Any]:
        y = self._in_blocks(mem, x.shape, w).forward(x, b)
        return y, (x.shape, w, x if True in mem.needs[1:2] else None)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x_shape, w, x = saved
        gx = gw = gb = None
        if needs[0] or needs[1]:
            blocks = self._in_blocks(mem, x_shape, w)
            gx, gw = blocks.backward(gy, x if needs[1] else None, needs[0])
        if True in needs[2:]:
            gb = mem.empty((len(w),), gy.dtype)
            sum_over((0, 2, 3), gb.reshape(1, -1, 1, 1), gy)
        return (gx, gw, gb)[: len(needs)]

    def _in_blocks(self, mem: Memory, x: Shape, w: Array) -> Convolution:
        layout = layout_of(self._windows(x, w.shape), x, w.shape, w.itemsize)
        return Convolution(mem, layout, self.groups, w)

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        bias = mem.empty((0,), x.dtype) if b is None else b
        y = self.compute(mem, "forward", x.shape, w, w, x, bias)
        return y, (x, w) if any(mem.needs) else None

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, w = saved
        gx = gw = gb = None
        if needs[0]:
            gx = self.compute(mem, "input_gradient", x.shape, w, w, gy)
        if needs[1]:
            gw = self.compute(mem, "weight_gradient", x.shape, w, gy, x)
        if True in needs[2:]:
            gb = mem.empty((len(w),), gy.dtype)
            _bias_gradient(mem, gy, gb)
        return (gx, gw, gb)[: len(needs)]

    def compute(self, mem: Memory, name: str, x: Shape, w: Array, *arrays: Array) -> Array:
        """What a kernel of implicit GEMM makes of the arrays, for images of shape x."""
        out = mem.empty(self.result(name, x, w.shape), w.dtype)
        if out.size:
            precision = get_float32_matmul_precision()
            launch = _launch_of(self, name, x, w.shape, w.dtype, precision)
            launch.write(mem, out, *arrays)
        return out

    def result(self, name: str, x: Shape, w: Shape) -> Shape:
        """The shape of what is computed: "forward", "input_gradient" or "weight_gradient"."""
        if name == "forward":
            return x[0], w[0], *self._windows(x, w).out
        return x if name == "input_gradient" else w

    def product_of(self, name: str, x: Shape, w: Shape) -> Sum:
        """The product of one group."""
        n, _, m, k, p = self._product(x, w)
        if name == "forward":
            return Sum(m, n * p, 1, k)
        if name == "input_gradient":
            return Sum(w[1], n * math.prod(x[2:]), 1, m * math.prod(w[2:]))
        return Sum(m, k, n, p)

    def choice(
        self, name: str, x: Shape, w: Shape, dtype: Any, precision: str
    ) -> ConvolutionChoice:
        """How such a product is computed, which shapes, dtype and precision tell."""
        cut = not self.naive or name == "weight_gradient"
        size = self.product_of(name, x, w)
        return choose_convolution(size, self.groups, dtype, precision, self.naive, cut)

    def launch(
        self, name: str, x: Shape, w: Shape, dtype: Any, choice: ConvolutionChoice
    ) -> ChunkedLaunch:
        """The launch of implicit GEMM that computes it so."""
        windows = self._windows(x, w)
        pixels, outputs = math.prod(x[1:]), w[0] * math.prod(windows.out)
        if max(pixels, outputs) >= 2**31:
            expected, way_out = "less than 2^31 elements in an image", 'use algorithm="im2col"'
            raise ShapeError(self.name, "x", expected, max(pixels, outputs), way_out)
        at = windows.numbers("out", "stride", "before", "dilation")
        # As CONVOLUTION_PARAMETERS in implicit_gemm.cuh.
        numbers = (*x, w[0], *w[2:], *at, self.groups, w[1], w[0] // self.groups)
        size = self.product_of(name, x, w)
        return convolution_launch(name, choice, size, self.groups, dtype, numbers)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries[0] and not any(carries[1:]) else None


@remembered
def _launch_of(
    op: Conv2d, name: str, x: Shape, w: Shape, dtype: Any, precision: str
) -> ChunkedLaunch:
    """The launch of a pass, remembered: a network asks for the same ones in every step."""
    return op.launch(name, x, w, dtype, op.choice(name, x, w, dtype, precision))


@frozen
class Conv1d(OfSequences, Conv2d):
    legends: ClassVar[dict[str, str]] = {"x": "(N, C, L)", "w": "(O, C/groups, K)"}


@frozen
class NaiveImplicitConv2d(Conv2d):
    """Implicit GEMM without the table, with one tile, uncut: the readable step before."""

    name = "conv2d"
    naive = True


@frozen
class Im2colConv2d(Conv2d):
    """conv2d with the columns of im2col written out: the step before implicit GEMM."""

    name = "conv2d"

    def forward_kernel(
        self, mem: Memory, x: Array, w: Array, b: Array | None = None
    ) -> tuple[Array, Any]:
        at, (n, g, m, k, p) = self._windows(x.shape, w.shape), self._product(x.shape, w.shape)
        cols = mem.empty((n, g, k, p), x.dtype)
        unfold_kernel(x, cols, at)
        y = mem.empty((n, g * m, *at.out), x.dtype)
        if b is None:
            gemm("nn", w, cols, y, m, p, k, [Axis(n, 0, g * k * p), Axis(g, m * k, k * p)])
        elif y.size:
            tile = tile_for(m, p)
            kernel = op_kernel("conv2d", "conv2d_forward", x.dtype, GEMM_TILE=tile)
            kernel(tile_grid(tile, m, p, n * g), THREADS, w, cols, b, Out(y), n, g, m, p, k)
        return y, (x.shape, w, cols if True in mem.needs[1:2] else None)

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x_shape, w, cols = saved
        n, g, m, k, p = self._product(x_shape, w.shape)
        gx = gw = gb = None
        if needs[0]:  # gcols[n, g] = w[g]^T @ gy[n, g]
            gcols = mem.empty((n, g, k, p), gy.dtype)
            gemm("tn", w, gy, gcols, k, p, m, [Axis(n, 0, g * m * p), Axis(g, m * k, m * p)])
            gx = mem.empty(x_shape, gy.dtype)
            fold_kernel(gcols, gx, self._windows(x_shape, w.shape))
        if needs[1]:  # gw[g] = sum over n of gy[n, g] @ cols[n, g]^T
            gw = mem.empty(w.shape, gy.dtype)
            groups, images = [Axis(g, m * p, k * p)], [Axis(n, g * m * p, g * k * p)]
            gemm("nt", gy, cols, gw, m, k, p, groups, images, mem)
        if True in needs[2:]:
            gb = mem.empty((g * m,), gy.dtype)
            _bias_gradient(mem, gy, gb)
        return (gx, gw, gb)[: len(needs)]


def _bias_gradient(mem: Memory, gy: Array, gb: Array) -> None:
    """Sum gy (N, O, P) over N and P as a CUDA kernel: chunks of images, then the chunks."""
    n, o, p = gy.shape[0], gy.shape[1], gy.shape[2] * gy.shape[3]
    if not o:
        return
    _bias_launch(n, o, p, gy.dtype).write(mem, gb, gy)


@remembered
def _bias_launch(n: int, o: int, p: int, dtype: Any) -> ChunkedLaunch:
    """Blocks sum chunks of images of one channel."""
    images_per_chunk = max(1, CHUNK // max(p, 1), blocks(n, MOST_BLOCKS))
    chunks = max(blocks(n, images_per_chunk), 1)
    kernel = op_kernel("conv2d", "conv2d_bias_gradient", dtype)
    return ChunkedLaunch(kernel.bind((o, chunks), THREADS, n, o, p, images_per_chunk), chunks)


ALGORITHMS = {
    "implicit": Conv2d,
    "naive_implicit": NaiveImplicitConv2d,
    "im2col": Im2colConv2d,
}


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
    padding : int, (vertical, horizontal), "same" or "valid"
        Zeros around the image, none for "valid"; "same" gives an output of ceil(H / stride) x
        ceil(W / stride), with an odd row or column of zeros at the bottom or right.
    groups : int
        Cut the channels into that many groups, each convolved with its own share of the filters.
    algorithm : "implicit", "naive_implicit" or "im2col"
        How the kernels do it: with the windows gathered in shared memory, the same in its simplest
        form, or written out and kept for backward, which needs KH * KW times the memory.  numpy
        makes and forgets them, a block of images at a time.

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
    if algorithm not in ALGORITHMS:
        raise ArgumentError(
            "conv2d", "algorithm", " or ".join(map(repr, ALGORITHMS)), repr(algorithm)
        )
    settings = sliding("conv2d", stride, padding, dilation)
    op = ALGORITHMS[algorithm](*settings, whole("conv2d", "groups", groups))
    return op(x, w) if b is None else op(x, w, b)


def conv1d(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of sequences with a bank of filters: `conv2d` of images of height 1.

    Parameters
    ----------
    x : Tensor (N, C, L)
        Sequences; float32 or float64.
    w : Tensor (O, C/groups, K)
        Filters, of the dtype of `x`.
    b : Tensor (O,), optional
        Bias.
    stride, padding, dilation, groups
        As for `conv2d`, for one axis; padding may be "same".

    Returns
    -------
    Tensor (N, O, OL)
        OL = floor((L + 2 * padding - dilation * (K - 1) - 1) / stride) + 1.

    Raises
    ------
    ShapeError, DtypeError, ArgumentError
        As `conv2d`.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.conv1d([[[1.0, 2.0, 4.0]]], [[[-1.0, 1.0]]]).value
    array([[[1., 2.]]], dtype=float32)
    """
    steps, gaps = (
        along("conv1d", name, value, 1, 1)
        for name, value in (("stride", stride), ("dilation", dilation))
    )
    pads = padding if isinstance(padding, str) else along("conv1d", "padding", padding, 0, 0)
    op = Conv1d(steps, padding_2d("conv1d", pads), gaps, whole("conv1d", "groups", groups))
    return op(x, w) if b is None else op(x, w, b)
