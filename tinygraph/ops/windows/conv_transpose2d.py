"""Transposed convolution: the derivative of a convolution by its images, as a function.

    N C H W    batch, input channels, height, width        G      groups
    O KH KW    output channels, kernel size                OH OW  output size

    y[n, o, u*s + i*d - p, v*s + j*d - p] += sum over c of w[c, o, i, j] * x[n, c, u, v]
    OH = (H - 1) * s - 2 * p + d * (KH - 1) + output_padding + 1

Let conv be the convolution of images (N, O, OH, OW) with the filters w, which gives (N, C, H, W).
It is linear in both, y is its gradient by the images for the upstream gradient x, and so

    gx = conv(gy, w)        gw = the gradient of conv(gy, w) by w for the upstream gradient x

Every pass is one of conv2d's, in numpy and as a kernel.

Source: Dumoulin, Visin, "A guide to convolution arithmetic", arXiv:1603.07285, chapter 4.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tinygraph.base import ArgumentError, ShapeError, frozen, whole
from tinygraph.engine import Gradients, Memory, Needs, Op, Operand, Tensor, as_tensor
from tinygraph.engine.spec import Array, Pair, Shape, Spec, require_float
from tinygraph.ops.common import device_of, documented, pair, remembered, require_ndim
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.sequences import OfSequences, along


@frozen
class ConvTranspose2d(Op):
    stride: Pair
    padding: Pair
    output_padding: Pair
    groups: int
    dilation: Pair

    legends: ClassVar[dict[str, str]] = {"x": "(N, C, H, W)", "w": "(C, O/groups, KH, KW)"}

    def _out(self, x: Shape, w: Shape) -> Shape:
        each = zip(
            x[2:], w[2:], self.stride, self.padding, self.output_padding, self.dilation, strict=True
        )
        sizes = [(n - 1) * s - 2 * p + d * (k - 1) + more + 1 for n, k, s, p, more, d in each]
        return x[0], w[1] * self.groups, *sizes

    def infer(self, x: Spec, w: Spec) -> Spec:
        require_float(self.name, x=x, w=w)
        for argument, spec in (("x", x), ("w", w)):
            require_ndim(self.name, argument, spec, 4, self.legends[argument])
        if x.shape[1] != w.shape[0]:
            expected = f"w.shape[0] equal to the {x.shape[1]} channels of x"
            way_out = f"weights are {self.legends['w']}, those of conv2d the other way round"
            raise ShapeError(self.name, "w", expected, w.shape[0], way_out)
        if x.shape[1] % self.groups:
            expected = f"input channels that {self.groups} groups divide"
            raise ShapeError(self.name, "x", expected, x.shape[1])
        if 0 in (*x.shape[2:], *w.shape[2:]):
            raise ShapeError(self.name, "x, w", "at least one element", f"{x.shape}, {w.shape}")
        out = self._out(x.shape, w.shape)
        if min(out[2:]) < 1:
            expected = "an output of at least one element"
            raise ShapeError(self.name, "padding", expected, f"{out[2:]}", "less padding")
        return Spec(out, x.dtype)

    def forward(self, mem: Memory, x: Array, w: Array) -> tuple[Array, Any]:
        image = self._out(x.shape, w.shape)
        y, _ = convolution(self).backward(mem, x, (image, w, None), (True, False))
        return y, (x if True in mem.needs[1:] else None, w)  # type: ignore[return-value]

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, w = saved
        conv, gw = convolution(self), None
        gx, of_conv = conv.forward(mem, gy, w)
        if needs[1]:
            _, gw = conv.backward(mem, x, of_conv, (False, True))
        return gx if needs[0] else None, gw

    def forward_kernel(self, mem: Memory, x: Array, w: Array) -> tuple[Array, Any]:
        image = self._out(x.shape, w.shape)
        y = convolution(self).compute(mem, "input_gradient", image, w, w, x)
        return y, (x if True in mem.needs[1:] else None, w)

    def backward_kernel(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        x, w = saved
        conv, gx, gw = convolution(self), None, None
        if needs[0]:
            gx = conv.compute(mem, "forward", gy.shape, w, w, gy, mem.empty((0,), gy.dtype))
        if needs[1]:
            gw = conv.compute(mem, "weight_gradient", gy.shape, w, x, gy)
        return gx, gw

    def batch(self, specs: tuple[Spec, ...], carries: tuple[bool, ...]) -> Any:
        return "map" if carries[0] and not carries[1] else None


@remembered
def convolution(op: ConvTranspose2d) -> Conv2d:
    """The convolution whose gradient it is, from images (N, O, OH, OW) to (N, C, H, W)."""
    return Conv2d(op.stride, op.padding, op.dilation, op.groups)


@frozen
class ConvTranspose1d(OfSequences, ConvTranspose2d):
    legends: ClassVar[dict[str, str]] = {"x": "(N, C, L)", "w": "(C, O/groups, K)"}


transposed = documented(
    """
    Parameters
    ----------
    groups : int
        Cut the channels into that many groups, each with its own share of the filters.

    Raises
    ------
    ShapeError
        The channels of `x`, `w`, `b` and `groups` do not fit, or the padding cuts off everything.
    DtypeError
        The inputs are not all float32 or all float64.
    ArgumentError
        A stride or dilation below 1, a negative padding, an output padding as large as the stride.
    """
)


@transposed
def conv_transpose2d(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    stride: int | Pair = 1,
    padding: int | Pair = 0,
    output_padding: int | Pair = 0,
    groups: int = 1,
    dilation: int | Pair = 1,
) -> Tensor:
    """Transposed convolution: each pixel paints a filter into the output, `stride` pixels apart.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        Images; float32 or float64.
    w : Tensor (C, O/groups, KH, KW)
        Filters, of the dtype of `x`.
    b : Tensor (O,), optional
        Bias.
    stride, dilation : int or (vertical, horizontal)
        How far neighbouring pixels, and neighbouring elements of a filter, come to lie apart.
    padding : int or (vertical, horizontal)
        How many rows and columns are cut off on each side.
    output_padding : int or (vertical, horizontal)
        Less than `stride`: more rows and columns at the bottom and right, of the sizes that the
        convolution back makes (H, W) of.

    Returns
    -------
    Tensor (N, O, OH, OW)
        OH = (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, OW likewise.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, w = tg.Tensor([[[[1.0, 2.0]]]]), tg.ones((1, 1, 2, 2))
    >>> tg.conv_transpose2d(x, w, stride=2).value[0, 0]
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]], dtype=float32)
    """
    name = "conv_transpose2d"
    steps, gaps = pair(name, "stride", stride), pair(name, "dilation", dilation)
    pads = pair(name, "padding", padding, minimum=0)
    more = pair(name, "output_padding", output_padding, minimum=0)
    _require_below(name, more, steps)
    return _biased(ConvTranspose2d(steps, pads, more, whole(name, "groups", groups), gaps), x, w, b)


@transposed
def conv_transpose1d(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    groups: int = 1,
    dilation: int = 1,
) -> Tensor:
    """Transposed convolution of sequences: see `conv_transpose2d`.

    Parameters
    ----------
    x : Tensor (N, C, L)
        Sequences; float32 or float64.
    w : Tensor (C, O/groups, K)
        Filters, of the dtype of `x`.
    b : Tensor (O,), optional
        Bias.
    stride, dilation, padding, output_padding : int
        As for `conv_transpose2d`.

    Returns
    -------
    Tensor (N, O, OL)
        OL = (L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.conv_transpose1d([[[1.0, 2.0]]], tg.ones((1, 1, 3))).value[0, 0]
    array([1., 3., 3., 2.], dtype=float32)
    """
    name = "conv_transpose1d"
    steps, gaps = along(name, "stride", stride, 1, 1), along(name, "dilation", dilation, 1, 1)
    pads = along(name, "padding", padding, 0, 0)
    more = along(name, "output_padding", output_padding, 0, 0)
    _require_below(name, more, steps)
    return _biased(ConvTranspose1d(steps, pads, more, whole(name, "groups", groups), gaps), x, w, b)


def _require_below(op: str, output_padding: Pair, stride: Pair) -> None:
    if any(more >= step for more, step in zip(output_padding, stride, strict=True)):
        raise ArgumentError(op, "output_padding", f"less than the stride {stride}", output_padding)


def _biased(op: ConvTranspose2d, x: Operand, w: Operand, b: Operand | None) -> Tensor:
    """The op, and the bias added by one more."""
    if b is None:
        return op(x, w)
    y = op(as_tensor(x, device=device_of(x, w, b)), w)
    bias = b if isinstance(b, Tensor) else as_tensor(b).value
    require_float(op.name, w=y.spec, b=Spec(bias.shape, bias.dtype))
    if bias.shape != y.shape[1:2]:
        expected = f"shape {y.shape[1:2]}, one number for each channel of the output"
        raise ShapeError(op.name, "b", expected, bias.shape, "reshape it, or pass b=None")
    return y + bias.reshape((*bias.shape, *(1,) * (y.ndim - 2)))
