"""Launches of look-ups: gather, embedding, and the sums by row that take their gradients back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

import tinygraph as tg
from tests.cuda.launch import F4, I8, Launch, Maker
from tests.cuda.launches import Family
from tests.cuda.recorded import launches_in, op_launches
from tinygraph.cuda import Out
from tinygraph.cuda.devices import EMULATOR
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.common import scatter


def _gather(random: np.random.Generator) -> Iterator[Launch]:
    def gather(x: Any, indices: np.ndarray, axis: int) -> Any:
        return tg.gather(x, axis, tg.Tensor(indices, device=x.device))

    shapes = [((1,), 1, 0), ((3, 7, 2), 5, 1), ((2, 150), 1, 1), ((4, 70), 128, 0)]
    for shape, count, axis in shapes:
        x = random.standard_normal(shape).astype(F4)
        indices = random.integers(0, shape[axis], (*shape[:axis], count, *shape[axis + 1 :]))
        yield from op_launches(lambda x, i=indices, a=axis: gather(x, i, a), x, label=f"{shape}")

    launch = Maker("gather.cu")  # what `check` keeps from the host's side
    x, indices = np.arange(1, 7, dtype=np.uint32), np.array([2, 0, -1, 3], I8)
    y = np.array([3, 1, 99, 99], np.uint32)  # (2, 3) at (2, 2)
    yield launch(
        "gather_forward<unsigned int>", 1, x, indices, Out(y), 4, 3, 2, 1, 99, label="out of range"
    )
    yield launch(
        "gather_positions",
        1,
        indices,
        Out(np.array([2, 0, -1, -1], I8)),
        4,
        3,
        2,
        1,
        label="out of range",
    )


def _embedding(random: np.random.Generator) -> Iterator[Launch]:
    for shape, rows, features in (((1,), 1, 1), ((16, 4), 3, 4), ((2, 50), 9, 3)):
        indices = random.integers(0, rows, shape)
        weight = random.standard_normal((rows, features)).astype(F4)
        yield from op_launches(
            lambda w, i=indices: tg.embedding(tg.Tensor(i, device=w.device), w),
            weight,
            label=f"{shape} of {rows}",
        )
    weight = np.arange(1, 7, dtype=F4).reshape(3, 2)
    y = np.array([[5, 6], [np.nan, np.nan], [np.nan, np.nan]], F4)
    launch = Maker("embedding.cu")
    yield launch(
        "embedding_forward<float>",
        1,
        np.array([2, -1, 3], I8),
        weight,
        Out(y),
        6,
        3,
        2,
        label="out of range",
    )


# terms, rows, features: one; a run exactly, one pass; several runs and passes; a long row
ROWS = [(1, 1, 1), (32, 15, 2), (300, 40, 3), (9000, 2, 1)]


def _scatter(random: np.random.Generator) -> Iterator[Launch]:
    memory = eager_memory((True,), EMULATOR)
    for n, rows, features in ROWS:
        keys = random.integers(-1, rows + 2, n)  # some are no rows
        terms = random.standard_normal((n, features)).astype(F4)
        expected = np.zeros((rows, features), F4)
        inside = (keys >= 0) & (keys < rows)
        np.add.at(expected, keys[inside], terms[inside])

        def sums(
            keys: np.ndarray = keys, terms: np.ndarray = terms, expected: np.ndarray = expected
        ) -> None:
            got = scatter.sum_by_row(memory, keys, terms, *expected.shape)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)  # the order differs

        for blocks in (1024, 3):  # few blocks: the scan goes through several tiles and chunks
            with mock.patch.object(scatter, "MOST_BLOCKS", blocks):
                yield from launches_in(f"{n} of {rows} in {blocks}", sums)


FAMILIES: dict[str, Family] = {
    "embedding.cu": _embedding,
    "gather.cu": _gather,
    "scatter.cu": _scatter,
}
