"""Sums by row: against numpy, which adds one term after the other, in float64."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.cuda.devices import EMULATOR
from tinygraph.engine.memory import eager_memory
from tinygraph.ops.common import scatter
from tinygraph.ops.common.scatter import sum_by_row

MEMORY = eager_memory((True,), EMULATOR)


def sums(keys, terms, rows):
    """One term after the other, in float64; keys beyond the rows left out."""
    out = np.zeros((rows, terms.shape[1]))
    inside = (keys >= 0) & (keys < rows)
    np.add.at(out, keys[inside], terms[inside])
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "n, rows, features",
    [(1, 1, 1), (32, 15, 2), (33, 16, 3), (900, 17, 1), (8300, 5, 1), (500, 70_000, 1)],
)
def test_the_sums_of_numpy(n, rows, features, dtype):
    random = np.random.default_rng(n)
    keys, terms = random.integers(0, rows, n), random.standard_normal((n, features)).astype(dtype)
    got = sum_by_row(MEMORY, keys, terms, rows, features)
    tolerance = 8 * np.finfo(dtype).eps * sums(keys, np.abs(terms), rows)
    assert got.dtype == dtype and (np.abs(got - sums(keys, terms, rows)) <= tolerance).all()


def test_keys_that_are_no_rows_are_left_out():
    keys = np.array([3, -1, 0, 15, 2**40, 3, -(2**63), 16])
    terms = np.arange(1.0, 17.0).reshape(8, 2)
    np.testing.assert_array_equal(sum_by_row(MEMORY, keys, terms, 15, 2), sums(keys, terms, 15))


@pytest.mark.parametrize("n, rows, features", [(0, 3, 2), (4, 3, 0)])
def test_no_terms(n, rows, features):
    got = sum_by_row(MEMORY, np.zeros(n, np.int64), np.ones((n, features)), rows, features)
    assert got.shape == (rows, features) and not got.any()


@pytest.mark.parametrize("most_blocks", [1, 2, 5])
def test_chunks_of_a_scan(monkeypatch, most_blocks):
    monkeypatch.setattr(scatter, "MOST_BLOCKS", most_blocks)
    x = np.random.default_rng(0).integers(0, 2**40, 1500)
    with tg.cuda.checking():
        got = scatter._scan(MEMORY, x)
    np.testing.assert_array_equal(got, np.cumsum(x) - x)
