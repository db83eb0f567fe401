"""Launches of the kernels of the negative log-likelihood."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.cuda.launch import F4, I8, Launch, Maker, Updated, null
from tinygraph.cuda import Out

# N, C, S; blocks: one row, a full block, edges, a block too many, two turns of the stride loop
ROWS = [((1, 1, 1), 1), ((256, 3, 1), 1), ((4, 5, 75), 2), ((300, 2, 1), 3), ((600, 4, 1), 1)]
IGNORED = 1


def _nll_loss(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("nll_loss.cu")
    for (n, c, s), grid in ROWS:
        x = random.integers(-8, 9, (n, c, s)).astype(F4)
        labels = random.integers(0, c, (n, s))
        if n > 1:
            labels.flat[[0, -1, 7]] = -1, c, 2**40  # no classes
        rows, known = n * s, (labels >= 0) & (labels < c)
        at = (np.arange(n)[:, None], np.where(known, labels, 0), np.arange(s))
        for ignores in (0, 1):
            counts = ~(ignores & (labels == IGNORED)).astype(bool)
            loss = np.where(counts, np.where(known, -x[at], np.nan), 0).astype(F4)
            numbers, label = (rows, c, s, ignores, IGNORED), f"{(n, c, s)} {ignores=}"
            yield launch("nll_loss_each<float>", grid, x, labels, Out(loss), *numbers, label=label)
            yield from _sums(launch, grid, x, np.where(known, labels, 0), numbers, label)
            for each in (0, 1):
                g = random.standard_normal((n, s) if each else 1).astype(F4)
                count = null(I8) if each else np.array([3])
                gx = np.zeros_like(x)
                gx[at] = np.where(counts & known, -g / (1 if each else 3), 0)
                yield launch(
                    "nll_loss_backward<float>",
                    grid,
                    g,
                    count,
                    labels,
                    Updated(np.zeros_like(x), gx),
                    *numbers,
                    each,
                    label=f"{label} {each=}",
                )


def _sums(
    launch: Maker,
    grid: int,
    x: np.ndarray,
    labels: np.ndarray,
    numbers: tuple[int, ...],
    label: str,
) -> Iterator[Launch]:
    """Of labels that all name a class, so that no NaN hides what is summed up."""
    counts = ~(numbers[3] & (labels == IGNORED)).astype(bool).reshape(-1)
    n, s = labels.shape
    loss = -x[np.arange(n)[:, None], labels, np.arange(s)].reshape(-1) * counts
    block = np.arange(loss.size) // 256 % grid
    sums = np.array([loss[block == b].sum() for b in range(grid)], F4)
    count = np.array([counts[block == b].sum() for b in range(grid)], I8)
    for divides in (0, 1):
        with np.errstate(invalid="ignore"):
            out = sums / count.astype(F4) if divides else sums
        yield launch(
            "nll_loss_sum<float>",
            grid,
            x,
            labels,
            Out(out),
            Out(count),
            *numbers,
            divides,
            label=f"{label} {divides=}",
        )


FAMILIES = {"nll_loss.cu": _nll_loss}
