"""Convolutions over one, two and three axes, and those the other way round."""

from __future__ import annotations

from typing import Any

from tinygraph import ops
from tinygraph.engine import Tensor
from tinygraph.interop.onnx.importers.shapes import padded
from tinygraph.interop.onnx.importers.spans import Span, same, spans, symmetric
from tinygraph.interop.onnx.nodes import Node, Value, importer, of_axes, take_memory


@importer("Conv")
def conv(node: Node, x: Value, w: Value, b: Value = None) -> Tensor:
    found = _spans(node, x, w)
    groups, axes = node["group"], len(found)
    if axes > 3:
        raise node.refuse("x", "one, two or three axes behind the channels", x.shape)
    if axes == 3:
        return _conv3d(x, w, b, found, groups)
    padding: Any = tuple([span.before for span in found])
    if same(node):
        padding = "same"
    elif not symmetric(found):
        borders = [(span.before, span.after) for span in found]
        x, padding = padded(x, [(0, 0), (0, 0), *borders], "constant"), (0,) * axes
    stride = tuple([span.stride for span in found])
    dilation = tuple([span.dilation for span in found])
    if axes == 1:
        padding = padding if padding == "same" else padding[0]
        return ops.conv1d(x, w, b, stride[0], padding, dilation[0], groups)
    return ops.conv2d(x, w, b, stride, padding, dilation, groups)  # type: ignore[arg-type]


def _spans(node: Node, x: Value, w: Value) -> list[Span]:
    if x.ndim < 3 or x.ndim != w.ndim:
        raise node.refuse("x, w", "as many axes, three or more", f"{x.shape}, {w.shape}")
    given = node["kernel_shape"]
    if given is not None and tuple(given) != w.shape[2:]:
        raise node.refuse("kernel_shape", f"{w.shape[2:]}, the shape of w", given)
    return spans(node, x.shape[2:], w.shape[2:])


def _conv3d(x: Tensor, w: Tensor, b: Value, found: list[Span], groups: int) -> Tensor:
    """The sum over the planes of the kernel, each a convolution of planes of the image."""
    borders = [(span.before, span.after) for span in found]
    x = padded(x, [(0, 0), (0, 0), *borders], "constant")
    deep, high, wide = found
    n = x.shape[0]
    stride, dilation = (high.stride, wide.stride), (high.dilation, wide.dilation)
    y: Any = None
    for k in range(deep.kernel):
        first = k * deep.dilation
        planes = x[:, :, first : first + (deep.out - 1) * deep.stride + 1 : deep.stride]
        images = ops.reshape(ops.movedim(planes, 2, 1), (-1, x.shape[1], *x.shape[3:]))
        part = ops.conv2d(images, w[:, :, k], None, stride, 0, dilation, groups)
        y = part if y is None else ops.add(y, part)
    y = ops.movedim(ops.reshape(y, (n, deep.out, *y.shape[1:])), 1, 2)
    return y if b is None else ops.add(y, ops.reshape(b, (-1, 1, 1, 1)))


# ---- the other way round ---------------------------------------------------------------------


@importer("ConvTranspose")
def conv_transpose(node: Node, x: Value, w: Value, b: Value = None) -> Tensor:
    if x.ndim != w.ndim or not 3 <= x.ndim <= 5:
        expected = "as many axes, one to three of them behind the channels"
        raise node.refuse("x, w", expected, f"{x.shape}, {w.shape}")
    axes = x.ndim - 2
    kernel = node["kernel_shape"]
    if kernel is not None and tuple(kernel) != w.shape[2:]:
        raise node.refuse("kernel_shape", f"{w.shape[2:]}, the shape of w", kernel)
    stride, dilation = (tuple(of_axes(node, name, axes, 1)) for name in ("strides", "dilations"))
    more = tuple(of_axes(node, "output_padding", axes, 0))
    full = [
        s * (n - 1) + d * (k - 1) + 1
        for s, n, d, k in zip(stride, x.shape[2:], dilation, w.shape[2:], strict=True)
    ]
    cut = _cut(node, x.shape[2:], full, stride, more)
    take_memory(full)
    groups = node["group"]
    even = all(low == high for low, high in cut)
    limits = zip(more, stride, dilation, strict=True)
    if axes < 3 and even and all(m < max(s, d) for m, s, d in limits):
        pads = tuple([low for low, _ in cut])
        if axes == 1:
            single = stride[0], pads[0], more[0], groups, dilation[0]
            return ops.conv_transpose1d(x, w, b, *single)
        pairs: Any = stride, pads, more, groups, dilation
        return ops.conv_transpose2d(x, w, b, *pairs)
    if axes == 3:
        y = _transpose3d(x, w, stride, dilation, groups)
    elif axes == 1:
        y = ops.conv_transpose1d(x, w, None, stride[0], 0, 0, groups, dilation[0])
    else:
        both: Any = stride, 0, 0, groups, dilation
        y = ops.conv_transpose2d(x, w, None, *both)
    widths = [(-low, m - high) for (low, high), m in zip(cut, more, strict=True)]
    y = padded(y, [(0, 0), (0, 0), *widths], "constant")
    return y if b is None else ops.add(y, ops.reshape(b, (-1, *[1] * axes)))


def _cut(
    node: Node, image: tuple[int, ...], full: list[int], stride: Any, more: Any
) -> list[tuple[int, int]]:
    """How many elements are cut off at both ends of each axis."""
    axes, auto, out = len(image), node["auto_pad"], node["output_shape"]
    if out is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        out = [n * s for n, s in zip(image, stride, strict=True)]
    if out is None:
        pads = [0] * 2 * axes if auto == "VALID" else of_axes(node, "pads", 2 * axes, 0)
        if min(pads) < 0:
            raise node.refuse("pads", "0 or more", pads)
        return [(pads[i], pads[axes + i]) for i in range(axes)]
    if len(out) not in (axes, axes + 2):  # some write those of samples and channels too
        raise node.refuse("output_shape", f"{axes} sizes", out)
    take_memory(out)
    cut = []
    for size, m, wanted in zip(full, more, out[-axes:], strict=True):
        total = size + m - wanted
        half = total // 2
        cut.append((half, total - half) if auto == "SAME_UPPER" else (total - half, half))
    return cut


def _transpose3d(x: Tensor, w: Tensor, stride: Any, dilation: Any, groups: int) -> Tensor:
    """The sum over the planes of the kernel, each put where it belongs along the first axis."""
    n, channels, deep = x.shape[:3]
    images = ops.reshape(ops.movedim(x, 2, 1), (-1, channels, *x.shape[3:]))
    step, reach = stride[0], dilation[0] * (w.shape[2] - 1)
    y: Any = None
    for k in range(w.shape[2]):
        settings: Any = stride[1:], 0, 0, groups, dilation[1:]
        part = ops.conv_transpose2d(images, w[:, :, k], None, *settings)
        planes = ops.reshape(part, (n, deep, 1, *part.shape[1:]))
        apart = ops.pad(planes, ((0, 0), (0, 0), (0, step - 1), *[(0, 0)] * 3))
        apart = ops.reshape(apart, (n, deep * step, *part.shape[1:]))[:, : (deep - 1) * step + 1]
        first = k * dilation[0]
        placed = ops.pad(apart, ((0, 0), (first, reach - first), *[(0, 0)] * 3))
        y = placed if y is None else ops.add(y, placed)
    return ops.movedim(y, 1, 2)
