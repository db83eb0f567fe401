"""Launches of the kernels of cumulative sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.cuda.launch import F4, I8, Launch, Maker, null
from tinygraph.cuda import Out

# kept0, L, kept2; slices, group; blocks
SCANS = [
    ((1, 1, 1), 1, 1, 1),
    ((256, 2, 1), 1, 1, 1),
    ((3, 9, 100), 1, 1, 2),
    ((4, 70, 11), 3, 1, 1),  # slices of 24, 24 and 22
    ((2, 256, 1), 1, 32, 1),
    ((21, 70, 1), 2, 32, 3),  # two turns, the last one of few warps
    ((1, 256, 1), 1, 256, 1),
    ((5, 1300, 1), 3, 256, 2),  # several turns of a block, the last slice shorter
]


def _cumulative_sums(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("cumsum.cu")
    for (kept0, length, kept2), slices, group, grid in SCANS:
        numbers = (kept0, 1, 1, length, kept2, slices, group)
        run = -(-length // slices)
        for name, dtype in (("float", F4), ("long long", I8)):
            for reverse in (0, 1):
                x = random.integers(-8, 9, (kept0, length, kept2)).astype(dtype)
                along = x[:, ::-1] if reverse else x
                y = np.cumsum(along, 1, dtype=dtype)
                ends = np.minimum(np.arange(1, slices + 1) * run, length) - 1
                starts = np.moveaxis(y[:, ends], 1, 2).copy()  # (kept0, kept2, slices)
                sums = np.diff(starts, axis=2, prepend=dtype(0))
                y = np.ascontiguousarray(y[:, ::-1] if reverse else y)
                label = f"{(kept0, length, kept2)} slices={slices} group={group} {reverse=}"
                given = starts if slices > 1 else null(dtype)
                yield launch(
                    f"cumulative_sums<{name}>",
                    grid,
                    x,
                    given,
                    Out(y),
                    reverse,
                    *numbers,
                    label=label,
                )
                yield launch(
                    f"slice_sums<{name}>", grid, x, Out(sums), reverse, *numbers, label=label
                )


FAMILIES = {"cumsum.cu": _cumulative_sums}
