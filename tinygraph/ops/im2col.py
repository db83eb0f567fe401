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

from typing import Any

import numpy as np

from tinygraph.cuda import Out, blocks, op_kernel
from tinygraph.errors import ShapeError
from tinygraph.frozen import frozen
from tinygraph.memory import Memory
from tinygraph.op import Gradients, Op
from tinygraph.ops.shared.docstrings import documented
from tinygraph.ops.shared.launch import THREADS
from tinygraph.shapes import (
    Array,
    Pair,
    Shape,
    Spec,
    Windows,
    padding_2d,
    pair,
    require_float,
    require_ndim,
    windows,
)
from tinygraph.tensor import Operand, Tensor

Windows2d = tuple[Windows, Windows]  # vertical, horizontal


def windows_2d(
    op: str,
    size: Shape,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair,
    ceil_mode: bool = False,
) -> Windows2d:
    """Windows over the last two axes of `size`."""
    pads = ("same", "same") if isinstance(padding, str) else padding
    vertical, horizontal = (
        windows(
            op,
            size[axis - 2],
            kernel_size[axis],
            stride[axis],
            pads[axis],
            dilation[axis],
            ceil_mode,
        )
        for axis in (0, 1)
    )
    return vertical, horizontal


def unfold(x: Array, cols: Array, at: Windows2d) -> None:
    """Write the windows of x (N, C, H, W) into cols (N, C*KH*KW, OH*OW); padding reads 0."""
    (n, c, h, w), (rows, columns) = x.shape, at
    out = cols.reshape(n, c, rows.kernel, columns.kernel, rows.out, columns.out)
    for i in range(rows.kernel):
        to_rows, from_rows = rows.inside(i, h)
        for j in range(columns.kernel):
            to_columns, from_columns = columns.inside(j, w)
            target = out[:, :, i, j]  # (N, C, OH, OW)
            if not _covers(to_rows, rows.out) or not _covers(to_columns, columns.out):
                target[...] = 0
            target[:, :, to_rows, to_columns] = x[:, :, from_rows, from_columns]


def fold(cols: Array, x: Array, at: Windows2d) -> None:
    """Write into x (N, C, H, W) the sums of the cols (N, C*KH*KW, OH*OW) that cover each pixel."""
    (n, c, h, w), (rows, columns) = x.shape, at
    source = cols.reshape(n, c, rows.kernel, columns.kernel, rows.out, columns.out)
    x[...] = 0
    for i in range(rows.kernel):
        from_rows, to_rows = rows.inside(i, h)
        for j in range(columns.kernel):
            from_columns, to_columns = columns.inside(j, w)
            x[:, :, to_rows, to_columns] += source[:, :, i, j, from_rows, from_columns]


def _covers(part: slice, size: int) -> bool:
    return part.start == 0 and part.stop == size


def unfold_kernel(x: Array, cols: Array, at: Windows2d) -> None:
    """`unfold` as a CUDA kernel; both arrays are contiguous."""
    _launch("im2col", x, cols, cols.size, x.shape, at)


def fold_kernel(cols: Array, x: Array, at: Windows2d) -> None:
    """`fold` as a CUDA kernel; both arrays are contiguous."""
    _launch("col2im", cols, x, x.size, x.shape, at)


def of_both_axes(at: Windows2d, *fields: str) -> tuple[int, ...]:
    """Numbers of the rows' windows and of the columns', side by side, as kernels take them."""
    return tuple([getattr(axis, field) for field in fields for axis in at])


def _launch(
    function: str, source: Array, target: Array, threads: int, image: Shape, at: Windows2d
) -> None:
    """One thread for each element of the target; in 64 bits where an index may not fit in 32."""
    if not threads:
        return
    wide = max(source.size, target.size) + THREADS > 2**31
    kernel = op_kernel("im2col", function, target.dtype, WIDE=int(wide))
    kernel(
        blocks(threads, THREADS),
        THREADS,
        source,
        Out(target),
        *image,
        *of_both_axes(at, "kernel", "out", "stride", "before", "dilation"),
    )


@frozen
class Im2col(Op):
    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    dilation: Pair

    def _windows(self, size: Shape) -> Windows2d:
        return windows_2d(
            self.name, size, self.kernel_size, self.stride, self.padding, self.dilation
        )

    def infer(self, x: Spec) -> Spec:
        require_float(self.name, x=x)
        require_ndim(self.name, "x", x, 4, "(N, C, H, W)")
        rows, columns = self._windows(x.shape)
        n, c = x.shape[:2]
        return Spec((n, c * rows.kernel * columns.kernel, rows.out * columns.out), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        cols = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, x.dtype)
        unfold(x, cols, self._windows(x.shape))
        return cols, x.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        fold(np.ascontiguousarray(gy), gx, self._windows(shape))
        return (gx,)

    def forward_kernel(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        cols = mem.empty(self.infer(Spec(x.shape, x.dtype)).shape, x.dtype)
        unfold_kernel(x, cols, self._windows(x.shape))
        return cols, x.shape

    def backward_kernel(
        self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]
    ) -> Gradients:
        gx = mem.empty(shape, gy.dtype)
        fold_kernel(gy, gx, self._windows(shape))
        return (gx,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


@frozen
class Col2im(Op):
    output_size: Pair
    kernel_size: Pair
    stride: Pair
    padding: Pair | str
    dilation: Pair

    def _windows(self) -> Windows2d:
        return windows_2d(
            self.name, self.output_size, self.kernel_size, self.stride, self.padding, self.dilation
        )

    def infer(self, cols: Spec) -> Spec:
        require_float(self.name, cols=cols)
        require_ndim(self.name, "cols", cols, 3, "(N, C*KH*KW, OH*OW)")
        rows, columns = self._windows()
        n, height, width = cols.shape
        offsets, positions = rows.kernel * columns.kernel, rows.out * columns.out
        if height % offsets or width != positions:
            raise ShapeError(
                self.name,
                "cols",
                f"(N, C * {offsets}, {positions}) for images of "
                f"{self.output_size}, kernel_size {self.kernel_size}",
                cols.shape,
                "take output_size and the window arguments of the im2col that made it",
            )
        return Spec((n, height // offsets, *self.output_size), cols.dtype)

    def forward(self, mem: Memory, cols: Array) -> tuple[Array, Any]:
        image = mem.empty(self.infer(Spec(cols.shape, cols.dtype)).shape, cols.dtype)
        fold(np.ascontiguousarray(cols), image, self._windows())
        return image, cols.shape

    def backward(self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]) -> Gradients:
        gcols = mem.empty(shape, gy.dtype)
        unfold(gy, gcols, self._windows())
        return (gcols,)

    def forward_kernel(self, mem: Memory, cols: Array) -> tuple[Array, Any]:
        image = mem.empty(self.infer(Spec(cols.shape, cols.dtype)).shape, cols.dtype)
        fold_kernel(cols, image, self._windows())
        return image, cols.shape

    def backward_kernel(
        self, mem: Memory, gy: Array, shape: Shape, needs: tuple[bool, ...]
    ) -> Gradients:
        gcols = mem.empty(shape, gy.dtype)
        unfold_kernel(gy, gcols, self._windows())
        return (gcols,)

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map"


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
        pair("im2col", "stride", stride),
        padding_2d("im2col", padding),
        pair("im2col", "dilation", dilation),
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
        pair("col2im", "stride", stride),
        padding_2d("col2im", padding),
        pair("col2im", "dilation", dilation),
    )(cols)
