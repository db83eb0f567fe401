"""Launches of the kernels of softmax cross-entropy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.cuda.launch import F4, F8, I8, Launch, Maker, null
from tinygraph.cuda import Out, blocks

ROWS = {  # N, C, S for each number of threads of a block and of a row
    (256, 1): [(1, 1, 1), (3, 5, 100), (4, 3, 64)],
    (256, 8): [(1, 1, 1), (33, 8, 1), (3, 13, 1)],
    (256, 32): [(1, 1, 1), (3, 40, 1), (8, 32, 1), (11, 7, 1)],
    (256, 256): [(1, 1, 1), (2, 300, 1), (3, 256, 1), (1, 600, 1)],
    (512, 1): [(3, 5, 100), (520, 3, 1)],
    (512, 8): [(3, 40, 1), (70, 8, 1)],
}
IGNORED = 2


@dataclass
class _Rows:
    """Logits (N, C, S) with what is known of them, and how their rows are dealt out."""

    macros: dict[str, int]
    x: np.ndarray
    maxima: np.ndarray
    totals: np.ndarray
    p: np.ndarray

    @staticmethod
    def of(x: np.ndarray, block: int, threads: int) -> _Rows:
        maxima = np.fmax.reduce(x, axis=1)
        exps = np.exp(x - maxima[:, None])
        totals = exps.sum(1)
        macros = {"BLOCK_THREADS": block, "ROW_THREADS": threads}
        return _Rows(macros, x, maxima, totals, exps / totals[:, None])

    @property
    def sizes(self) -> tuple[int, int, int]:
        n, c, s = self.x.shape
        return n * s, c, s

    @property
    def saved(self) -> list[np.ndarray]:
        return [self.maxima.astype(F4), self.totals.astype(F4)]

    @property
    def grid(self) -> int:
        return blocks(self.sizes[0], self.at_a_time)

    @property
    def at_a_time(self) -> int:
        """How many rows a block owns at a time."""
        return self.macros["BLOCK_THREADS"] // self.macros["ROW_THREADS"]

    def launch(self, name: str, grid: int, *arguments: Any, label: str) -> Launch:
        made = Maker("softmax_cross_entropy.cu", self.macros)(name, grid, *arguments, label=label)
        return replace(made, block=self.macros["BLOCK_THREADS"])


def _softmax_cross_entropy(random: np.random.Generator) -> Iterator[Launch]:
    for (block, threads), shapes in ROWS.items():
        for shape in shapes:
            x = (3 * random.standard_normal(shape)).astype(F8)
            rows = _Rows.of(x, block, threads)
            given = random.integers(0, shape[1], rows.totals.shape).astype(I8)
            t = random.random(shape)
            for smoothing in (0.0, 0.25):
                yield from _label_sums(rows, given, smoothing)
            yield from _probability_sums(rows, t)
            if rows.sizes[0] > 3:  # from here on what would make each sum NaN
                x[0, 0, :] = np.nan
                rows = _Rows.of(x, block, threads)
            yield from _label_rows(rows, given, 0.25)
            yield from _probability_rows(rows, t)
            if block == 256:
                for smoothing in (0.0, 0.25):
                    yield from _label_gradients(rows, given, random, smoothing)
                yield from _probability_gradients(rows, t, random)


def _sums(rows: _Rows, losses: np.ndarray, counts: np.ndarray) -> Iterator[tuple[int, list[Any]]]:
    """Blocks; null for losses, sums and counts; and whether these are divided."""
    for grid in {rows.grid, 1}:  # of one block, which takes several turns
        block = np.arange(losses.size) // rows.at_a_time % grid
        sums = np.array([losses.ravel()[block == b].sum() for b in range(grid)])
        number = np.array([counts.ravel()[block == b].sum() for b in range(grid)], I8)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums / number
        yield grid, [null(), Out(sums.astype(F4)), Out(number), *rows.sizes, 0]
        yield grid, [null(), Out(means.astype(F4)), Out(number), *rows.sizes, 1]


def _shares(rows: _Rows, smoothing: float) -> tuple[float, float]:
    return 1 - smoothing, smoothing / rows.sizes[1]


def _label_losses(
    rows: _Rows, labels: np.ndarray, ignores: int, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    """The losses, and which of them count."""
    known = (labels >= 0) & (labels < rows.sizes[1])
    picked = np.take_along_axis(rows.x, np.where(known, labels, 0)[:, None], axis=1)[:, 0]
    losses = np.where(known, np.log(rows.totals) - (picked - rows.maxima), np.nan)
    onto, even = _shares(rows, smoothing)
    losses = onto * losses + (even * _logs(rows).sum(1) if even else 0)
    counts = (labels != IGNORED) if ignores else np.full(labels.shape, True)
    return np.where(counts, losses, 0), counts


def _label_sums(rows: _Rows, labels: np.ndarray, smoothing: float) -> Iterator[Launch]:
    for ignores in (0, 1):
        losses, counts = _label_losses(rows, labels, ignores, smoothing)
        for grid, sums in _sums(rows, losses, counts):
            yield rows.launch(
                "labels_forward<float>",
                grid,
                rows.x.astype(F4),
                labels,
                *map(Out, rows.saved),
                *sums,
                ignores,
                IGNORED,
                *_shares(rows, smoothing),
                label=f"x={rows.x.shape} {grid=} {ignores=} {smoothing=} divides={sums[-1]}",
            )


def _odd(labels: np.ndarray, classes: int) -> np.ndarray:
    """At the ends of x labels that are out of range, and so lead out of it."""
    labels = labels.copy()
    if labels.size > 2:
        labels.ravel()[[0, 1, labels.size - 1]] = -1, IGNORED % classes, classes + 3
    return labels


def _label_rows(rows: _Rows, labels: np.ndarray, smoothing: float) -> Iterator[Launch]:
    labels = _odd(labels, rows.sizes[1])
    for ignores in (0, 1):
        losses, _ = _label_losses(rows, labels, ignores, smoothing)
        yield rows.launch(
            "labels_forward<float>",
            rows.grid,
            rows.x.astype(F4),
            labels,
            *map(Out, rows.saved),
            Out(losses.astype(F4)),
            null(),
            null(I8),
            *rows.sizes,
            0,
            ignores,
            IGNORED,
            *_shares(rows, smoothing),
            label=f"x={rows.x.shape} {ignores=} each",
        )


def _label_gradients(
    rows: _Rows, labels: np.ndarray, random: np.random.Generator, smoothing: float
) -> Iterator[Launch]:
    onto, even = _shares(rows, smoothing)
    labels = _odd(labels, rows.sizes[1])
    onehot = (np.arange(rows.sizes[1])[:, None] == labels[:, None]).astype(F8)
    for ignores in (0, 1):
        counts = (labels != IGNORED) | (ignores == 0)
        for each, divisor in ((0, 3), (1, 0)):
            gloss = random.standard_normal(labels.shape if each else 1).astype(F4)
            gx = np.where(counts, gloss / (divisor or 1), 0)[:, None] * (
                rows.p - onto * onehot - even
            )
            gx = np.where(counts[:, None], gx, 0).astype(F4)
            yield rows.launch(
                "labels_backward<float>",
                rows.grid,
                gloss,
                np.array([divisor], I8) if divisor else null(I8),
                rows.x.astype(F4),
                labels,
                *rows.saved,
                Out(gx),
                *rows.sizes,
                each,
                ignores,
                IGNORED,
                onto,
                even,
                label=f"x={rows.x.shape} {ignores=} {each=} {smoothing=}",
            )


def _logs(rows: _Rows) -> np.ndarray:
    """-log(softmax)"""
    return np.log(rows.totals)[:, None] - (rows.x - rows.maxima[:, None])


def _probability_forward(
    rows: _Rows, t: np.ndarray, grid: int, rest: list[Any], label: str
) -> Launch:
    arrays = rows.x.astype(F4), t.astype(F4), *map(Out, [*rows.saved, t.sum(1).astype(F4)])
    name, shape = "probabilities_forward<float>", rows.x.shape
    return rows.launch(name, grid, *arrays, *rest, label=f"x={shape} {label}")


def _probability_sums(rows: _Rows, t: np.ndarray) -> Iterator[Launch]:
    losses = (t * _logs(rows)).sum(1)
    for grid, sums in _sums(rows, losses, np.ones(losses.shape, bool)):
        yield _probability_forward(rows, t, grid, sums, f"{grid=} divides={sums[-1]}")


def _probability_rows(rows: _Rows, t: np.ndarray) -> Iterator[Launch]:
    losses = Out((t * _logs(rows)).sum(1).astype(F4))
    rest = [losses, null(), null(I8), *rows.sizes, 0]
    yield _probability_forward(rows, t, rows.grid, rest, "each")


def _probability_gradients(
    rows: _Rows, t: np.ndarray, random: np.random.Generator
) -> Iterator[Launch]:
    weights, logs = t.sum(1), _logs(rows)
    for each, divisor in ((0, 3), (1, 0)):
        gloss = random.standard_normal(rows.totals.shape if each else 1).astype(F4)
        g = gloss[:, None] if each else gloss / divisor
        gx = (g * (rows.p * weights[:, None] - t)).astype(F4)
        gt = (g * logs).astype(F4)
        for gradients in ((Out(gx), Out(gt)), (null(), Out(gt)), (Out(gx), null())):
            yield rows.launch(
                "probabilities_backward<float>",
                rows.grid,
                gloss,
                np.array([divisor], I8) if divisor else null(I8),
                rows.x.astype(F4),
                t.astype(F4),
                *rows.saved,
                weights.astype(F4),
                *gradients,
                *rows.sizes,
                each,
                label=f"x={rows.x.shape} {each=}",
            )


FAMILIES = {"softmax_cross_entropy.cu": _softmax_cross_entropy}
