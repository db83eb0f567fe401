"""Sums over axes and of terms that meet, against sums in Python that round once (math.fsum)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinygraph.engine.memory import eager_memory
from tinygraph.ops.common.totals import CHAIN, LANES, add_parts, add_where, sum_over, total

LINE = CHAIN * LANES[2]
SIZES = st.sampled_from(
    [1, 2, 3, CHAIN - 1, CHAIN, CHAIN + 1, 2 * CHAIN, LINE, LINE + 1, 4 * LINE + 1]
)
DTYPES = st.sampled_from([np.float32, np.float64])
MOST = 40_000  # numbers of an array


@st.composite
def problems(draw, contiguous=False):
    """An array in some layout, and axes of it."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=4).filter(lambda s: math.prod(s) <= MOST))
    order = draw(st.permutations(range(len(shape))))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.uniform(0.5, 1, [shape[a] for a in order]).astype(draw(DTYPES))
    x = x.transpose(np.argsort(order))
    if not contiguous and draw(st.booleans()):
        x = x[..., ::-1]
    if not contiguous and draw(st.booleans()):
        x = np.repeat(x, 2, axis=0)[::2]
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    return x, tuple(sorted(axes))


def exact(x, axes):
    """The sums with their axes, rounded once."""
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    kept = moved.shape[: x.ndim - len(axes)]
    found = [math.fsum(moved[at].reshape(-1).tolist()) for at in np.ndindex(kept)]
    return np.expand_dims(np.array(found).reshape(kept), axes)


def assert_close(got, want, terms):
    tolerance = 4 * (1 + math.log2(max(terms, 2))) * np.finfo(got.dtype).eps / 2
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=0)


@given(problem=problems(), keeps=st.booleans())
def test_total(problem, keeps):
    x, axes = problem
    want = exact(x, axes)
    out = np.empty(want.shape if keeps else np.squeeze(want, axes).shape, x.dtype)
    assert total(x, axes, out) is out
    assert_close(out.reshape(want.shape), want, x.size)


@given(problem=problems(), factors=st.integers(1, 2))
def test_sum_over(problem, factors):
    x, axes = problem
    given_ = (x, (2 - x).astype(x.dtype))[:factors]
    want = exact(np.prod([f.astype(np.float64) for f in given_], axis=0), axes)
    out = np.empty(want.shape, x.dtype)
    assert sum_over(axes, out, *given_) is out
    assert_close(out, want, x.size)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 3)])
@pytest.mark.parametrize("axis", [0, -1])
def test_of_nothing(shape, axis):
    x, axes = np.ones(shape, np.float32), (axis % len(shape),)
    want = np.sum(x, axis=axis, keepdims=True)
    np.testing.assert_array_equal(total(x, axes, np.empty(want.shape, x.dtype)), want)
    np.testing.assert_array_equal(sum_over(axes, np.empty(want.shape, x.dtype), x), want)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_column(value):
    x = np.ones((10 * CHAIN + 3, 3), np.float32)
    x[5 * CHAIN, 1] = value
    got = total(x, (0,), np.empty(3, np.float32))
    np.testing.assert_array_equal(got, [len(x), value, len(x)])


def test_integers_are_exact():
    x = np.full((1 << 10, 2), 2**52 + 1, np.int64)
    assert total(x, (0,), np.empty(2, np.int64)).tolist() == [(2**52 + 1) << 10] * 2


@given(
    rows=st.integers(1, 5),
    terms=st.sampled_from([0, 1, CHAIN, CHAIN + 1, 1000]),
    beyond=st.sampled_from([0, 2000]),
    features=st.integers(1, 3),
    dtype=DTYPES,
    seed=st.integers(0, 99),
)
def test_add_where(rows, terms, beyond, features, dtype, seed):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, rows, terms) + beyond
    added = rng.uniform(0.5, 1, (terms, features)).astype(dtype)
    sums = np.full((rows + beyond, features), 0.5, dtype)
    add_where(eager_memory((True,)), sums, keys, added)
    for row in range(len(sums)) if not beyond else {0, *keys.tolist()}:
        for d in range(features):
            want = math.fsum([0.5, *added[keys == row, d].tolist()])
            assert_close(sums[row, d, None], np.array([want]), terms)


@given(count=st.integers(0, 5 * CHAIN))
def test_add_parts(count):
    y = np.zeros(3)
    add_parts(y, lambda i: (i % 3, 1.0 + i), 0, count)
    assert y.tolist() == [float(sum(1 + i for i in range(count) if i % 3 == k)) for k in range(3)]
