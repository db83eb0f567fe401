"""Exporters of ops whose windows slide over images: convolution, pooling, im2col; interpolation.

Padding is written as numbers, also where tinygraph says "same": the convention of ONNX's own word
is another one where a convolution is dilated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.engine import Array, Shape, Tensor
from tinygraph.interop.onnx.exporters.shapes import reshaped
from tinygraph.interop.onnx.table import exporter
from tinygraph.interop.onnx.writer import Writer
from tinygraph.ops.windows.adaptive_avg_pool2d import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    OneWindow,
)
from tinygraph.ops.windows.avg_pool2d import AvgPool2d
from tinygraph.ops.windows.conv2d import Conv1d, Conv2d, Im2colConv2d, NaiveImplicitConv2d
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.ops.windows.conv_transpose2d import ConvTranspose1d, ConvTranspose2d
from tinygraph.ops.windows.global_avg_pool2d import GlobalAvgPool2d
from tinygraph.ops.windows.im2col import Col2im, Im2col
from tinygraph.ops.windows.interpolate import NEAREST, Interpolate
from tinygraph.ops.windows.max_pool2d import MaxPool2d
from tinygraph.ops.windows.windows import Windows2d


def pads_of(op: Any, at: Windows2d) -> list[int]:
    """The padding of both axes, before and then behind, where "same" depends on the sizes."""
    if isinstance(op.padding, str):
        return [at.rows.before, at.columns.before, at.rows.after, at.columns.after]
    return [*op.padding, *op.padding]


def whole_pads(at: Windows2d) -> list[int]:
    """The same with what the last windows overhang, as in ceil_mode: all windows fit exactly."""
    after = [max(axis.after, 0) for axis in at]
    return [at.rows.before, at.columns.before, *after]


def raised(shape: Shape) -> Shape:
    """A shape (N, C, L) as that of images of height 1."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else shape


def settings_of(op: Any, x: Shape, w: Shape) -> dict[str, Any]:
    """The attributes of a convolution of images, or of sequences: those of the last axis alone."""
    kernel, axes = raised(w)[2:], slice(len(w) == 3, None)
    pads = [*op.padding, *op.padding]
    if isinstance(op.padding, str):
        pads = pads_of(op, op._windows(raised(x), raised(w)))
    return {
        "kernel_shape": kernel[axes],
        "strides": op.stride[axes],
        "dilations": op.dilation[axes],
        "pads": [*pads[:2][axes], *pads[2:][axes]],
        "group": op.groups,
    }


@exporter(Conv2d, Conv1d, NaiveImplicitConv2d, Im2colConv2d)
def convolution(w: Writer, node: Tensor, x: str, weight: str, bias: str = "") -> str:
    shapes = [spec.shape for spec in node.inputs[:2]]
    given = [x, weight, bias] if bias else [x, weight]
    return w.node("Conv", *given, **settings_of(node.op, *shapes))


@exporter(ConvTranspose2d, ConvTranspose1d)
def transposed_convolution(w: Writer, node: Tensor, x: str, weight: str) -> str:
    op, (image, filters) = node.op, [spec.shape for spec in node.inputs[:2]]
    more = op.output_padding[len(filters) == 3 :]
    settings = settings_of(op, image, filters)
    return w.node("ConvTranspose", x, weight, output_padding=more, **settings)


@exporter(Conv2dReluMaxPool2d)
def stage(w: Writer, node: Tensor, *inputs: str) -> str:
    """The op is these three."""
    y = w.node("Relu", convolution(w, node, *inputs))
    size = (node.op.pool, node.op.pool)
    return w.node("MaxPool", y, kernel_shape=size, strides=size)


# ---- pooling ------------------------------------------------------------------------------------


@exporter(MaxPool2d)
def max_pool(w: Writer, node: Tensor, x: str) -> str:
    """Padding as wide as the kernel, of dilated windows, is one of -inf before it."""
    op, at = node.op, node.op._windows(node.inputs[0].shape)
    pads = whole_pads(at) if op.ceil_mode else pads_of(op, at)
    if any(n >= size for n, size in zip(pads, op.kernel_size * 2, strict=True)):
        border = w.ints(0, 0, *pads[:2], 0, 0, *pads[2:])
        x, pads = w.node("Pad", x, border, w.constant(-math.inf, node.dtype)), [0] * 4
    settings = {"kernel_shape": op.kernel_size, "strides": op.stride, "pads": pads}
    if op.dilation != (1, 1):
        settings["dilations"] = op.dilation
    return w.node("MaxPool", x, **settings)


@exporter(AvgPool2d)
def avg_pool(w: Writer, node: Tensor, x: str) -> str:
    """Where windows overhang, the mean of whole windows times a number for each of them."""
    op, image = node.op, node.inputs[0].shape
    at = op._windows(image)
    settings: dict[str, Any] = {"kernel_shape": op.kernel_size, "strides": op.stride}
    if not op.ceil_mode:
        counted = int(op.whole or op.count_include_pad)
        pads = pads_of(op, at)
        return w.node("AveragePool", x, pads=pads, count_include_pad=counted, **settings)
    y = w.node("AveragePool", x, pads=whole_pads(at), count_include_pad=1, **settings)
    share = math.prod(op.kernel_size) / op._divisor(image, np.dtype(np.float64))
    return y if (share == 1).all() else w.node("Mul", y, w.constant(share, node.dtype))


@exporter(GlobalAvgPool2d, OneWindow)
def global_avg_pool(w: Writer, node: Tensor, x: str) -> str:
    return w.node("GlobalAveragePool", x)


@exporter(AdaptiveAvgPool2d, AdaptiveAvgPool1d)
def adaptive_avg_pool(w: Writer, node: Tensor, x: str) -> str:
    """Windows of one size are AveragePool; else a product with a matrix of means on each axis."""
    before, after = node.inputs[0].shape[2:], node.shape[2:]
    if not any(n % parts for n, parts in zip(before, after, strict=True)):
        size = [n // parts for n, parts in zip(before, after, strict=True)]
        return w.node("AveragePool", x, kernel_shape=size, strides=size)
    matrices = [_means(n, parts) for n, parts in zip(before, after, strict=True)]
    return along_axes(w, x, matrices, node.dtype)


def _means(size: int, parts: int) -> Array:
    """(parts, size): which elements each window has, divided by how many they are."""
    window, element = np.ogrid[:parts, :size]
    inside = (window * size < (element + 1) * parts) & (element * parts < (window + 1) * size)
    return inside / inside.sum(axis=1, keepdims=True)


def along_axes(w: Writer, x: str, matrices: list[Array], dtype: Any) -> str:
    """The last axes of x, one or two, each multiplied by a matrix (out, in)."""
    y = w.node("MatMul", x, w.constant(matrices[-1].T, dtype))
    return y if len(matrices) == 1 else w.node("MatMul", w.constant(matrices[0], dtype), y)


# ---- windows as columns -------------------------------------------------------------------------


@exporter(Im2col)
def im2col(w: Writer, node: Tensor, x: str) -> str:
    """A convolution whose filters have a single 1 each: one for each place in a window."""
    op, image = node.op, node.inputs[0]
    channels, (high, wide) = image.shape[1], op.kernel_size
    places = np.eye(high * wide).reshape(high * wide, 1, high, wide)
    settings = {
        "kernel_shape": op.kernel_size,
        "strides": op.stride,
        "dilations": op.dilation,
        "pads": pads_of(op, op._windows(image.shape)),
        "group": channels,
    }
    filters = w.constant(np.tile(places, (channels, 1, 1, 1)), image.dtype)
    return reshaped(w, w.node("Conv", x, filters, **settings), node.shape)


@exporter(Col2im)
def col2im(w: Writer, node: Tensor, x: str) -> str:
    op = node.op
    pads = pads_of(op, op._windows(node.inputs[0].shape))
    sizes = w.ints(*op.output_size), w.ints(*op.kernel_size)
    return w.node("Col2Im", x, *sizes, strides=op.stride, dilations=op.dilation, pads=pads)


# ---- other places than pixels -------------------------------------------------------------------


@exporter(Interpolate)
def interpolate(w: Writer, node: Tensor, x: str) -> str:
    """Resize; but for the nearest pixel of sizes that do not divide its places are written down,
    for runtimes compute them in float32 and round some to the pixel beside."""
    op, image = node.op, node.inputs[0].shape
    sizes = list(zip(image[2:], node.shape[2:], strict=True))
    how: dict[str, Any] = {"axes": [2, 3]}
    if op.mode in NEAREST:
        if op.mode == "nearest" and op.scale is None and not any(out % n for n, out in sizes):
            how |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            return w.node("Resize", x, "", "", w.ints(*node.shape[2:]), **how)
        for axis, pixel, _ in op._reads(image, np.dtype(np.float64)):
            x = w.node("Gather", x, w.constant(pixel, np.int64), axis=axis)
        return x
    place = "align_corners" if op.align_corners else "half_pixel"
    how |= {"mode": "linear", "coordinate_transformation_mode": place}
    if op.scale is None or op.align_corners:
        return w.node("Resize", x, "", "", w.ints(*node.shape[2:]), **how)
    scales = [1.0 if n == out else f for f, (n, out) in zip(op.scale, sizes, strict=True)]
    return w.node("Resize", x, "", w.constant(scales, np.float32), **how)
