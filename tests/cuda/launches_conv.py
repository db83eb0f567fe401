"""Launches of implicit GEMM, and of the kernel that fuses a convolution with ReLU and pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, Launch
from tests.cuda.recorded import launches_in, op_launches
from tinygraph.cuda.devices import EMULATOR
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.windows.conv2d_relu_max_pool2d import Conv2dReluMaxPool2d
from tinygraph.ops.windows.single_channel_stage import SingleChannelStage, sum_parts
from tinygraph.plan.rewrites.stage_and_linear import StageAndLinear

# images, filters, keywords
FUSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 1, 2, 2), (1, 1, 1, 1), {}),
    ((3, 1, 10, 11), (35, 1, 3, 3), {}),  # two blocks of filters, two turns of the items
    ((2, 5, 8, 7), (3, 5, 3, 3), {"padding": 1, "pool": 3}),  # two panels of taps
    ((5, 2, 11, 10), (2, 2, 2, 3), {"stride": (2, 2), "dilation": (1, 2), "padding": (1, 0)}),
    ((35, 1, 4, 4), (1, 1, 3, 3), {"padding": 1}),  # two chunks of images, the last one short
    ((1, 1, 34, 36), (1, 1, 1, 1), {}),  # more windows of a filter than threads
]


def _fused(random: np.random.Generator) -> Iterator[Launch]:
    function = tg.conv2d_relu_max_pool2d
    for images, filters, keywords in FUSED:
        x, w, b = (
            random.standard_normal(shape).astype(F4) for shape in (images, filters, filters[:1])
        )
        label = f"x={images} w={filters}"
        yield from op_launches(function, x, w, b, label=label, **keywords)
        yield from op_launches(function, x, w, label=f"{label} no b", **keywords)
    x = random.standard_normal((1, 1, 4, 4)).astype(F4)
    x[0, 0, :2, :2] = np.nan  # the first of several in one window
    yield from op_launches(function, x, np.ones((1, 1, 1, 1), F4), np.zeros(1, F4), label="NaN")


STAGES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 1, 4, 4), (2, 1, 3, 3)),  # one window
    ((3, 1, 10, 11), (36, 1, 3, 3)),  # two blocks of filters; a window more than lanes
    ((70, 1, 6, 6), (2, 1, 3, 3)),  # chunks of images, the last one short; two blocks of windows
    ((2, 1, 34, 34), (6, 1, 3, 3)),  # two groups of most windows in a block, and half a block
]


def _single_channel_stage(random: np.random.Generator) -> Iterator[Launch]:
    function = tg.conv2d_relu_max_pool2d
    for images, filters in STAGES:
        x, w, b = (
            random.standard_normal(shape).astype(F4) for shape in (images, filters, filters[:1])
        )
        label = f"x={images} w={filters}"
        yield from op_launches(function, x, w, b, label=label)
        yield from op_launches(function, x, w, label=f"{label} no b")
    x = random.standard_normal((1, 1, 6, 6)).astype(F4)
    x[0, 0, :2, :2] = np.nan  # the first of several in one window
    yield from op_launches(function, x, np.ones((2, 1, 3, 3), F4), np.zeros(2, F4), label="NaN")
    yield from _stage_and_linear(random)


def _stage_and_linear(random: np.random.Generator) -> Iterator[Launch]:
    stage = Conv2dReluMaxPool2d((1, 1), (0, 0), (1, 1), 1, 2)
    for images, filters in STAGES:
        features = filters[0] * math.prod((side - 2) // 2 for side in images[2:])
        shapes = images, filters, filters[:1], (3, features), (3,)
        arrays = [random.standard_normal(shape).astype(F4) for shape in shapes]
        op = StageAndLinear(stage, has_bias=True)
        yield from op_launches(op, *arrays, label=f"linear x={images} w={filters}", constants=(0,))

    def in_chunks_of_70() -> None:
        """So that gradients of the linear layer lie in shared memory in two turns."""
        sizes, shape = SingleChannelStage(139, 4, 4, 2), (139, 2, 1)
        floats = [(139, 3), (3, 2), (139, 1, 4, 4), shape]
        gy, v, x, pooled = (random.standard_normal(shape).astype(F4) for shape in floats)
        argmax = random.choice([0, 1, 2, 3, 255], shape).astype(np.uint8)
        parts = [np.empty((2, *s), F4) for s in [(2, 1, 3, 3), (2,), (3, 2), (3,)]]
        sizes.linear_backward(3, (gy, v, x, pooled, argmax, *parts), 70, F4)
        rows = np.add.reduceat(gy, [0, 70])
        np.testing.assert_allclose(parts[3], rows, rtol=2e-4, atol=2e-5)

    yield from launches_in("linear in chunks of 70", in_chunks_of_70)


def _sums_of_parts(random: np.random.Generator) -> Iterator[Launch]:
    for parts, sizes in ((2, (1, 257, 40, 3)), (3, (300, 1)), (5, (256,))):
        arrays = [random.standard_normal((parts, size)).astype(F4) for size in sizes]
        totals = [np.empty(size, F4) for size in sizes]
        pairs = zip(arrays, totals, strict=True)
        work = partial(sum_parts, eager_memory((), EMULATOR), *pairs)
        yield from launches_in(f"parts={parts} sizes={sizes}", work)
        for array, total in zip(arrays, totals, strict=True):
            np.testing.assert_allclose(total, array.sum(axis=0), rtol=2e-4, atol=2e-5)


# images, filters, keywords of conv2d
CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((2, 3, 9, 10), (5, 3, 3, 3), {"padding": 1}),  # steps that no tap, no filter fills
    ((3, 4, 8, 7), (6, 2, 2, 3), {"groups": 2, "stride": (2, 1), "dilation": (1, 2)}),
    ((2, 3, 9, 10), (5, 3, 3, 3), {"padding": 1, "algorithm": "naive_implicit"}),
    ((2, 2, 7, 8), (3, 2, 3, 2), {"padding": (2, 1), "stride": 3}),  # phases
    ((1, 1, 3, 4), (131, 1, 1, 1), {}),  # three tiles of 64 filters
    ((1, 128, 2, 2), (1, 128, 1, 1), {"stride": 2}),  # a tile of 128 channels; two of taps
    ((2, 1, 9, 8), (1, 1, 1, 1), {}),  # two tiles of columns
    ((1, 44, 3, 3), (2, 44, 3, 3), {"padding": 1}),  # sums in chunks
]


def _conv2d(random: np.random.Generator) -> Iterator[Launch]:
    for images, filters, keywords in CONVOLUTIONS:
        x, w, b = (
            random.standard_normal(shape).astype(F4) for shape in (images, filters, filters[:1])
        )
        yield from op_launches(tg.conv2d, x, w, b, label=f"x={images} w={filters}", **keywords)
    yield from op_launches(tg.conv2d, x, w, label="no b", **keywords)


FAMILIES = {
    "conv2d_implicit.cu": _conv2d,
    "conv2d_relu_max_pool2d.cu": _fused,
    "single_channel_stage.cu": _single_channel_stage,
    "sums_of_parts.cu": _sums_of_parts,
}
