"""im2col and col2im: the windows of an image as columns of a matrix, and back.

    N C H W    batch, channels, height, width
    KH KW      kernel size          OH OW      number of windows on each axis

    cols[n, (c, i, j), (u, v)] = x[n, c, u * stride + i * dilation - pad, v * stride + ...]
    image[n, c, h, w] = sum of all cols entries that were read from (h, w); padding reads 0

Each is the other's derivative: both are linear, and their matrices are transposes of each other.
A convolution is one im2col and one matrix product.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing", IWFHR 2006.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from tinygraph.base import ShapeError, frozen
from tinygraph.cuda import Out, blocks, op_kernel
from tinygraph.engine import Array, Memory, Operand, Pair, Shape, Spec, Tensor, require_float
from tinygraph.engine.op import Gradients, Needs, Op
from tinygraph.ops.common import THREADS, documented, pair, require_images, require_ndim
from tinygraph.ops.windows.windows import Windows2d, sliding, windows_2d


def unfold(x: Array, cols: Array, at: Windows2d) -> None:
    """Write the windows of x (N, C, H, W) into cols (N, C*KH*KW, OH*OW); padding reads 0."""
    out = cols.reshape(*x.shape[:2], *at.numbers("kernel", "out"))
    for i, j, to, source in at.offsets(x.shape):
        target = out[:, :, i, j]  # (N, C, OH, OW)
        if target[to].shape != target.shape:
            target[...] = 0
        target[to] = x[source]


def fold(cols: Array, x: Array, at: Windows2d) -> None:
    """Write into x (N, C, H, W) the sums of the cols (N, C*KH*KW, OH*OW) that cover each pixel."""
    source = cols.reshape(*x.shape[:2], *at.numbers("kernel", "out"))
    x[...] = 0
    for i, j, windows, pixels in at.offsets(x.shape):
        x[pixels] += source[:, :, i, j][windows]


def unfold_kernel(x: Array, cols: Array, at: Windows2d) -> None:
    """`unfold` as a CUDA kernel; both arrays are contiguous."""
    _launch("im2col", x, cols, x.shape, at)


def fold_kernel(cols: Array, x: Array, at: Windows2d) -> None:
    """`fold` as a CUDA kernel; both arrays are contiguous."""
    _launch("col2im", cols, x, x.shape, at)


def _launch(function: str, source: Array, target: Array, image: Shape, at: Windows2d) -> None:
    """One thread for each element of the target; in 64 bits where an index may not fit in 32."""
    if target.size:
        wide = max(source.size, target.size) + THREADS > 2**31
        kernel = op_kernel("im2col", function, target.dtype, WIDE=int(wide))
        numbers = at.numbers("kernel", "out", "stride", "before", "dilation")
        kernel(blocks(target.size, THREADS), THREADS, source, Out(target), *image, *numbers)


class _Linear:
    """Mixed into both ops: backward walks as the other op's forward."""

    there: ClassVar[Any]  # forward, in numpy and as a kernel
    back: ClassVar[Any]

    @abstractmethod
    def infer(self, x: Spec) -> Spec: ...

    @abstractmethod
    def _windows(self, x: Shape) -> Windows2d:
        """The windows over the image, for an input of this shape."""

    def forward(self, mem: Memory, x: Array, kernel: bool = False) -> tuple[Array, Any]:
        y = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, x.dtype)
        self.there[kernel](x, y, self._windows(x.shape))
        return y, x.shape

    def backward(
        self, mem: Memory, gy: Array, shape: Shape, needs: Needs, kernel: bool = False
    ) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        self.back[kernel](gy, gx, self._windows(shape))
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return self.forward(mem, x, kernel=True)

    def backward_kernel(self, mem: Memory, gy: Array, shape: Shape, needs: Needs) -> Gradients:
        return self.backward(mem, gy, shape, needs, kernel=True)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


@frozen
class Im2col(_Linear, Op):
    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    dilation: Pair

    there: ClassVar[Any] = unfold, unfold_kernel
    back: ClassVar[Any] = fold, fold_kernel

    def _windows(self, x: Shape) -> Windows2d:
        settings = self.kernel_size, self.stride, self.padding, self.dilation
        return windows_2d(self.name, x[2:], *settings)

    def infer(self, x: Spec) -> Spec:
        require_images(self.name, x)
        kh, kw, oh, ow = self._windows(x.shape).numbers("kernel", "out")
        return Spec((x.shape[0], x.shape[1] * kh * kw, oh * ow), x.dtype)


@frozen
class Col2im(_Linear, Op):
    output_size: Pair
    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    dilation: Pair

    there: ClassVar[Any] = fold, fold_kernel
    back: ClassVar[Any] = unfold, unfold_kernel

    def _windows(self, cols: Shape) -> Windows2d:
        settings = self.kernel_size, self.stride, self.padding, self.dilation
        return windows_2d(self.name, self.output_size, *settings)

    def infer(self, cols: Spec) -> Spec:
        require_float(self.name, cols=cols)
        require_ndim(self.name, "cols", cols, 3, "(N, C*KH*KW, OH*OW)")
        kh, kw, oh, ow = self._windows(cols.shape).numbers("kernel", "out")
        n, height, width = cols.shape
        if height % (kh * kw) or width != oh * ow:
            images = f"images of {self.output_size}, kernel_size {self.kernel_size}"
            expected = f"(N, C * {kh * kw}, {oh * ow}) for {images}"
            way_out = "take output_size and the window arguments of the im2col that made it"
            raise ShapeError(self.name, "cols", expected, cols.shape, way_out)
        return Spec((n, height // (kh * kw), *self.output_size), cols.dtype)


@documented()
def im2col(
    x: Operand,
    kernel_size: int | Pair,
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
) -> Tensor:
    """The windows of an image as columns.  PyTorch calls it unfold.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        float32 or float64.
    kernel_size, stride, dilation : int or (vertical, horizontal)
    padding : int, (vertical, horizontal) or "same"
        Zeros around the image; "same" gives ceil(H / stride) x ceil(W / stride) windows.

    Returns
    -------
    Tensor (N, C*KH*KW, OH*OW)
        Row (c, i, j) holds channel c at kernel offset (i, j), column (u, v) window (u, v).

    Raises
    ------
    ShapeError
        `x` has not four axes, or the kernel is larger than the padded image.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.arange(9.0).reshape(1, 1, 3, 3)
    >>> tg.im2col(x, kernel_size=2).value[0]
    array([[0., 1., 3., 4.],
           [1., 2., 4., 5.],
           [3., 4., 6., 7.],
           [4., 5., 7., 8.]], dtype=float32)
    """
    return Im2col(
        pair("im2col", "kernel_size", kernel_size),
        *sliding("im2col", stride, padding, dilation),
    )(x)


@documented()
def col2im(
    cols: Operand,
    output_size: int | Pair,
    kernel_size: int | Pair,
    stride: int | Pair = 1,
    padding: int | Pair | str = 0,
    dilation: int | Pair = 1,
) -> Tensor:
    """Columns summed back into an image: the transpose of im2col.  PyTorch calls it fold.

    Parameters
    ----------
    cols : Tensor (N, C*KH*KW, OH*OW)
        float32 or float64.
    output_size : int or (H, W)
        Height and width of the image.
    kernel_size, stride, padding, dilation
        As for `im2col`.

    Returns
    -------
    Tensor (N, C, H, W)
        Each pixel is the sum of the column entries that im2col would have read from it.

    Raises
    ------
    ShapeError
        `cols` has not the shape that im2col gives for these arguments.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.col2im(tg.ones((1, 4, 4)), output_size=3, kernel_size=2).value[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]], dtype=float32)
    """
    return Col2im(
        pair("col2im", "output_size", output_size),
        pair("col2im", "kernel_size", kernel_size),
        *sliding("col2im", stride, padding, dilation),
    )(cols)
