"""Launches of the kernels of losses of labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.cuda.launch import BLOCK, F4, F8, FLAT, I8, Launch, Maker, null
from tinygraph.cuda import Out, blocks

ROWS = {  # N, C, S for each ROW_THREADS
    1: [(1, 1, 1), (3, 5, 100), (4, 3, 64)],
    32: [(1, 1, 1), (3, 40, 1), (8, 32, 1), (11, 7, 1)],
    256: [(1, 1, 1), (2, 300, 1), (3, 256, 1), (1, 600, 1)],
}
IGNORED = 2


def _softmax_cross_entropy(random: np.random.Generator) -> Iterator[Launch]:
    yield from _rows(random)
    yield from _sums(random)


def _rows(random: np.random.Generator) -> Iterator[Launch]:
    for row_threads, shapes in ROWS.items():
        launch = Maker("softmax_cross_entropy.cu", {"ROW_THREADS": row_threads})
        for shape in shapes:
            n, c, s = shape
            rows, grid = n * s, blocks(n * s, BLOCK // row_threads)
            x = (3 * random.standard_normal(shape)).astype(F8)
            if rows > 3:
                x[0, 0, :] = np.nan
            maxima = np.fmax.reduce(x, axis=1)
            exps = np.exp(x - maxima[:, None])
            row = _Rows(x, maxima, exps.sum(1), exps / exps.sum(1, keepdims=True), (rows, c, s))
            yield from _label_launches(launch, row, grid, random)
            yield from _probability_launches(launch, row, grid, random)


@dataclass
class _Rows:
    """Logits (N, C, S) with their maxima, totals (N, S) and softmax, and the sizes to pass."""

    x: np.ndarray
    maxima: np.ndarray
    totals: np.ndarray
    p: np.ndarray
    sizes: tuple[int, int, int]


def _label_launches(
    launch: Maker, of: _Rows, grid: int, random: np.random.Generator
) -> Iterator[Launch]:
    rows, classes, _ = of.sizes
    labels = random.integers(0, classes, of.totals.shape).astype(I8)
    if rows > 2:  # at the ends of x, where a label out of range leads out of it
        labels.ravel()[[0, 1, rows - 1]] = -1, IGNORED % classes, classes + 3
    onehot = (np.arange(classes)[:, None] == labels[:, None]).astype(F8)
    known = (labels >= 0) & (labels < classes)
    picked = np.take_along_axis(of.x, np.where(known, labels, 0)[:, None], axis=1)[:, 0]
    loss = np.where(known, np.log(of.totals) - (picked - of.maxima), np.nan)
    saved = [of.maxima.astype(F4), of.totals.astype(F4)]
    x = of.x.astype(F4)
    for ignores in (0, 1):
        counts = (labels != IGNORED) if ignores else np.full(labels.shape, True)
        label = f"x={x.shape} ignores={ignores}"
        out = np.where(counts, loss, 0).astype(F4)
        yield launch(
            "labels_forward<float>",
            grid,
            x,
            labels,
            Out(out),
            *map(Out, saved),
            *of.sizes,
            ignores,
            IGNORED,
            label=label,
        )
        for each, divisor in ((0, 3), (1, 0)):
            gloss = random.standard_normal(labels.shape if each else 1).astype(F4)
            gx = np.where(counts, gloss / (divisor or 1), 0)[:, None] * (of.p - onehot)
            gx = np.where(counts[:, None], gx, 0).astype(F4)
            count = np.array([divisor], I8) if divisor else null(I8)
            yield launch(
                "labels_backward<float>",
                grid,
                gloss,
                count,
                x,
                labels,
                *saved,
                Out(gx),
                *of.sizes,
                each,
                ignores,
                IGNORED,
                label=f"{label} each={each}",
            )


def _probability_launches(
    launch: Maker, of: _Rows, grid: int, random: np.random.Generator
) -> Iterator[Launch]:
    t = random.random(of.x.shape)
    logs = np.log(of.totals)[:, None] - (of.x - of.maxima[:, None])  # -log(softmax)
    weights = t.sum(1)
    saved = [of.maxima.astype(F4), of.totals.astype(F4), weights.astype(F4)]
    x, given = of.x.astype(F4), t.astype(F4)
    label = f"x={x.shape}"
    yield launch(
        "probabilities_forward<float>",
        grid,
        x,
        given,
        Out((t * logs).sum(1).astype(F4)),
        *map(Out, saved),
        *of.sizes,
        label=label,
    )
    for each, divisor in ((0, 3), (1, 0)):
        gloss = random.standard_normal(of.totals.shape if each else 1).astype(F4)
        g = (gloss / (divisor or 1))[:, None] if each else gloss / (divisor or 1)
        gx = (g * (of.p * weights[:, None] - t)).astype(F4)
        gt = (g * logs).astype(F4)
        count = np.array([divisor], I8) if divisor else null(I8)
        for gradients in ((Out(gx), Out(gt)), (null(), Out(gt)), (Out(gx), null())):
            yield launch(
                "probabilities_backward<float>",
                grid,
                gloss,
                count,
                x,
                given,
                *saved,
                *gradients,
                *of.sizes,
                each,
                label=f"{label} each={each}",
            )


def _sums(random: np.random.Generator) -> Iterator[Launch]:
    launch = Maker("softmax_cross_entropy.cu", {"ROW_THREADS": 1})
    for n, grid in FLAT:
        loss = random.standard_normal(n).astype(F4)
        labels = random.integers(1, 4, n).astype(I8)
        owner = np.arange(n) // BLOCK % grid
        for given in (labels, null(I8)):
            counted = given != IGNORED if given.size else np.full(n, True)
            for divides in (0, 1):
                sums = np.array([loss[owner == i].sum() for i in range(grid)], F4)
                counts = np.array([counted[owner == i].sum() for i in range(grid)], I8)
                with np.errstate(invalid="ignore", divide="ignore"):
                    out = (sums / counts).astype(F4) if divides else sums
                label = f"n={n} divides={divides}"
                yield launch(
                    "sum_of_rows<float>",
                    grid,
                    loss,
                    given,
                    Out(out),
                    Out(counts),
                    n,
                    IGNORED,
                    divides,
                    label=label,
                )
                total = np.array([loss.sum() / (labels.sum() if divides else 1)], F4)
                count = Out(labels.sum(keepdims=True))
                yield launch(
                    "sum_of_partials<float>",
                    1,
                    loss,
                    labels,
                    Out(total),
                    count,
                    n,
                    divides,
                    label=label,
                )


FAMILIES = {"softmax_cross_entropy.cu": _softmax_cross_entropy}
