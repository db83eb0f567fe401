"""The three forms of a convolution: the image, its windows as columns, and one matrix product.

    image (C, H, W)  ->  columns (C * KH * KW, OH * OW)       each column is a window of the image
    weights (O, C * KH * KW) @ columns  =  output (O, OH * OW)        each row is a filter

For the first sample of a batch, and the first group.  Each form is a step of its own, with the
numbers that it comes from; see origins.py.
"""

from __future__ import annotations

from typing import Any

from tinygraph.engine import Tensor
from tinygraph.ops.products.matmul import Matmul
from tinygraph.ops.windows.conv2d import Conv2d
from tinygraph.ops.windows.im2col import Im2col
from tinygraph.show.stepping.arrays import Arrays
from tinygraph.show.stepping.origins import origins_of

ENTRIES = 8_000  # of origins, on a page
MOST_COLUMNS = 400_000  # elements; of larger ones no forms are made


def forms(node: Tensor, arrays: Arrays, count: int) -> list[dict[str, Any]]:
    """The forms of a node's convolution: titles, arrays, and the arrays that each is made of.

    It is one of `count` convolutions on the page.
    """
    if not is_convolution(node):
        return []
    op: Any = node.op
    entries = max(64, ENTRIES // 2 // count)
    x, w = (part.device.to_numpy(part.value) for part in node.inputs[:2])
    groups, kernel = op.groups, tuple(w.shape[2:])
    image = x[:1, : w.shape[1]]
    windows = Im2col(kernel, op.stride, op.padding, op.dilation)
    if not image.size or image.size * kernel[0] * kernel[1] > MOST_COLUMNS:
        return []
    columns, from_image = origins_of(windows, [image], entries)
    filters = w[: w.shape[0] // groups].reshape(w.shape[0] // groups, -1)
    product, from_columns = origins_of(Matmul(), [filters, columns[0]], entries)
    shown = [arrays.add(a) for a in (image[0], columns[0], filters, product)]
    return [
        {"title": "the image, first sample", "array": shown[0], "of": [], "origins": None},
        {"title": "its windows as columns", "array": shown[1], "of": [0], "origins": from_image},
        {"title": "the filters as rows", "array": shown[2], "of": [], "origins": None},
        {"title": "rows times columns", "array": shown[3], "of": [2, 1], "origins": from_columns},
    ]


def is_convolution(node: Tensor) -> bool:
    """Whether the op of a node is one of images."""
    return isinstance(node.op, Conv2d) and len(node.inputs[0].shape) == 4
