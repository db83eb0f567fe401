"""Launches of the kernels that fuse a convolution, ReLU and max-pooling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, Launch
from tests.cuda.recorded import op_launches

# images, filters, keywords, outputs of the linear layer
SETTINGS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], int]] = [
    ((1, 1, 2, 2), (1, 1, 1, 1), {}, 1),
    ((3, 1, 10, 11), (35, 1, 3, 3), {}, 10),  # two blocks of filters, two turns of the items
    ((2, 5, 8, 7), (3, 5, 3, 3), {"padding": 1, "pool": 3}, 12),  # two panels of taps
    ((5, 2, 11, 10), (2, 2, 2, 3), {"stride": (2, 1), "dilation": (1, 2), "padding": (1, 0)}, 3),
    ((34, 1, 4, 4), (1, 1, 3, 3), {"padding": 1}, 2),  # two chunks of images in backward
    ((1, 1, 34, 36), (1, 1, 1, 1), {}, 1),  # more windows of a filter than threads
]


def _fused(
    function: Callable[..., Any], head: bool
) -> Callable[[np.random.Generator], Iterator[Launch]]:
    def launches(random: np.random.Generator) -> Iterator[Launch]:
        for images, filters, keywords, outs in SETTINGS:
            arrays = [random.standard_normal(shape).astype(F4)
                      for shape in (images, filters, filters[:1])]  # fmt: skip
            if head:
                features = tg.conv2d_relu_max_pool2d(*arrays, **keywords).value[0].size
                arrays += [random.standard_normal(shape).astype(F4)
                           for shape in ((outs, features), (outs,))]  # fmt: skip
            yield from op_launches(function, *arrays, label=f"x={images} w={filters}", **keywords)

    return launches


FAMILIES = {
    "conv2d_relu_max_pool2d.cu": _fused(tg.conv2d_relu_max_pool2d, False),
    "conv2d_relu_max_pool2d_linear.cu": _fused(tg.conv2d_relu_max_pool2d_linear, True),
}
