"""Windows over any number of axes: what a file says of kernels, strides, dilations and pads."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tinygraph.engine import Array
from tinygraph.interop.onnx.nodes import Node, take_memory


class Span(NamedTuple):
    """Windows on one axis."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    def behind(self) -> int:
        """How much padding the last window reads, or what is asked for where it reads less."""
        reach = (self.out - 1) * self.stride + self.dilation * (self.kernel - 1) + 1
        return max(reach - self.size - self.before, self.after)

    def places(self) -> Array:
        """(OUT, K): where each window reads, counted from the first real element."""
        take_memory([self.out, self.kernel])
        first = np.arange(self.out)[:, None] * self.stride - self.before
        return first + np.arange(self.kernel) * self.dilation


def spans(node: Node, image: tuple[int, ...], kernel: tuple[int, ...]) -> list[Span]:
    """The windows on each axis of an image."""
    axes = len(image)
    if len(kernel) != axes or min(kernel, default=1) < 1:
        raise node.refuse("kernel_shape", f"{axes} sizes of 1 or more", kernel)
    strides, dilations = node["strides"] or [1] * axes, node["dilations"] or [1] * axes
    pads, auto = node["pads"] or [0] * 2 * axes, node["auto_pad"] or "NOTSET"
    if len(strides) != axes or len(dilations) != axes or len(pads) != 2 * axes:
        raise node.refuse("strides, dilations, pads", f"numbers for {axes} axes", "others")
    if min(*strides, *dilations) < 1 or min(pads) < 0:
        raise node.refuse("strides, dilations", "1 or more, and pads of 0 or more", "less")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise node.refuse("auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto)
    found = []
    for i, size in enumerate(image):
        before, after = (pads[i], pads[axes + i]) if auto == "NOTSET" else (0, 0)
        reach = dilations[i] * (kernel[i] - 1) + 1
        if auto.startswith("SAME"):
            total = max((-(-size // strides[i]) - 1) * strides[i] + reach - size, 0)
            before = total // 2 if auto == "SAME_UPPER" else total - total // 2
            after = total - before
        room = size + before + after - reach
        if room < 0:
            raise node.refuse("x", f"at least {reach} elements on axis {i + 2}", size)
        out = (math.ceil if node["ceil_mode"] else math.floor)(room / strides[i]) + 1
        if node["ceil_mode"] and (out - 1) * strides[i] >= size + before:
            out -= 1  # no window begins in the padding behind
        found.append(Span(size, kernel[i], strides[i], dilations[i], before, after, out))
    take_memory([span.out for span in found])
    return found


def symmetric(found: list[Span]) -> bool:
    """Whether the padding is the same on both sides of each axis."""
    return all(span.before == span.after for span in found)


def same(node: Node) -> bool:
    """Whether the padding is "same" as tinygraph has it."""
    return node["auto_pad"] == "SAME_UPPER"
