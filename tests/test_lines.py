"""Maxima and sums of lines, on both sides of each limit, against loops of Python."""

import math

import numpy as np
import pytest

from tinygraph.engine.memory import eager_memory
from tinygraph.ops.common.lines import LONG, MANY, SHORT, SHORTEST, maxima, sums

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0]
LONGER = [(MANY, length) for length in (SHORTEST - 1, SHORTEST, LONG - 1, LONG)]
SHAPES = [(lines, length) for lines in (1, MANY - 1, MANY) for length in (1, SHORT - 1, SHORT)]


def drawn(shape, dtype, special=0.0):
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape).astype(dtype)
    return np.where(rng.random(shape) < special, rng.choice(SPECIAL, shape), x).astype(dtype)


def largest(line):
    return math.nan if any(map(math.isnan, line)) else max(line, default=-math.inf)


def by_loops(function, x, axis):
    lines = np.moveaxis(x, axis, -1)
    found = [function(lines[at].tolist()) for at in np.ndindex(lines.shape[:-1])]
    return np.expand_dims(np.reshape(found, lines.shape[:-1]), axis)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [*SHAPES, (MANY, 0), (2, MANY, 3), (0, 3)])
def test_maxima(shape, dtype):
    for x in (drawn(shape, dtype, 0.1), drawn(shape, dtype)[..., ::-1]):
        for axis in (-1, 0) if len(x) else (-1,):
            got = maxima(eager_memory((False,)), x, axis)
            np.testing.assert_array_equal(got, by_loops(largest, x, axis))
            assert got.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [*SHAPES, *LONGER, (MANY, 0), (2, MANY, 3), (0, 3)])
def test_sums(shape, dtype):
    tolerance = 8 * np.finfo(dtype).eps
    for x in (drawn(shape, dtype), drawn(shape, dtype).T.copy().T):
        for axis in (-1, 0):
            got = sums(eager_memory((False,)), x, axis)
            want, size = by_loops(math.fsum, x, axis), by_loops(math.fsum, np.abs(x), axis)
            assert got.dtype == dtype and got.shape == want.shape
            assert (np.abs(got - want) <= tolerance * size).all()


@pytest.mark.parametrize("lines", [2, MANY])
def test_sums_of_what_is_not_finite_stay_in_their_line(lines):
    x = np.tile(np.float32([[1, np.inf], [np.inf, -np.inf], [np.nan, 0], [1, 2]]), (lines, 1))
    with np.errstate(invalid="ignore"):
        got = sums(eager_memory((False,)), x, -1)
    np.testing.assert_array_equal(
        got[:, 0], np.tile(np.float32([np.inf, np.nan, np.nan, 3]), lines)
    )
