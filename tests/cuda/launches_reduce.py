"""Launches of the kernels of reductions over axes, and of broadcasting."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tests.cuda.launch import BLOCK, F4, Launch, Maker
from tinygraph.cuda import Out, blocks

# kept0, reduced0, kept1, reduced1, kept2; slices, group; blocks
SETS = [
    ((1, 1, 1, 1, 1), 1, 1, 1),
    ((1, 1, 1, 1, 256), 1, 1, 1),
    ((1, 1, 1, 9, 300), 1, 1, 2),
    ((3, 4, 5, 7, 11), 3, 1, 1),  # two turns
    ((1, 8, 3, 25, 1), 1, 32, 1),
    ((21, 1, 1, 70, 1), 2, 32, 3),  # two turns, the last one of few warps
    ((2, 3, 2, 250, 1), 2, 256, 3),  # several turns of a block
]


def _reductions(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("sum.cu")
    for sizes, slices, group, grid in SETS:
        x = random.integers(-8, 9, sizes).astype(F4)
        sets = np.moveaxis(x, (0, 2, 4), (0, 1, 2)).reshape(sizes[0] * sizes[2] * sizes[4], -1)
        slice_of = np.arange(sets.shape[1]) // group % slices
        sums = np.stack([sets[:, slice_of == s].sum(1) for s in range(slices)], axis=1)
        numbers = (*sizes, slices, group)
        label = f"{sizes} group={group}"
        yield launch("sum_forward<float>", grid, x, Out(sums), *numbers, label=label)
        gy = random.standard_normal(x[:, :1, :, :1].shape).astype(F4)
        gx = np.broadcast_to(gy, sizes).copy()
        yield launch("sum_backward<float>", grid, gy, Out(gx), *numbers, label=label)


# sizes with the innermost axis first, mask of kept axes, lanes, spacing, terms of a chunk
EXPANDED = [
    ((1,), 1, 1, 1, 1),
    ((256,), 1, 1, 256, 1),
    ((7, 5, 3), 0b010, 8, 1, 21),
    ((300, 41), 0b01, 4, 64, 25),  # two chunks, the second one shorter
    ((600, 3), 0b10, 4, 1, 350),  # several runs in each thread
    ((5, 7), 0b10, 2, 128, 5),
    ((2, 3, 2, 2, 3, 2), 0b010110, 256, 1, 12),  # more threads than terms
]


def _broadcasting(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("expand.cu")
    for sizes, kept, lanes, spacing, per_chunk in EXPANDED:
        g = random.integers(-8, 9, sizes[::-1]).astype(F4)
        number = len(sizes)
        axes = [number - 1 - axis for axis in range(number) if kept >> axis & 1][::-1]
        outputs = math.prod(g.shape[axis] for axis in axes)
        terms = np.moveaxis(g, axes, range(len(axes))).reshape(outputs, -1)
        sums = np.add.reduceat(terms, range(0, terms.shape[1], per_chunk), axis=1).T.copy()
        grid = (blocks(outputs * lanes, BLOCK), len(sums))
        yield launch(
            "expand_backward<float>",
            grid,
            g,
            Out(sums),
            outputs,
            terms.shape[1],
            per_chunk,
            lanes,
            spacing,
            number,
            *sizes,
            *[1] * (6 - number),
            kept,
            label=f"{sizes} kept={kept:b}",
        )


FAMILIES = {"sum.cu": _reductions, "expand.cu": _broadcasting}
