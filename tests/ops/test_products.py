"""dot, mv, mm, bmm and outer against loops; operands of other axes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds
from tinygraph.base.errors import ShapeError

V, M, S = np.ones(3), np.ones((3, 3)), np.ones((2, 3, 3))


def of_axes(*axes):
    """Problems of two operands whose axes are letters."""

    def problem(sizes, first, second):
        shapes = [[sizes["BMKN".index(letter)] for letter in one] for one in axes]
        samples = tuple(one[0] in "BM" for one in axes)
        made = zip((first, second), shapes, strict=True)
        return Problem(tuple(numbers(seed, s) for seed, s in made), {}, samples)

    sizes = st.tuples(*[st.integers(1, 4)] * 4)
    return st.builds(problem, sizes, seeds, seeds)


def product(x, y):
    """The sum of products over the last axis of x and the first, or last but one, of y."""
    if x.ndim > 2:
        return np.array([product(a, b) for a, b in zip(x, y, strict=True)])
    rows = x if x.ndim > 1 else x[None]
    columns = y if y.ndim > 1 else y[:, None]
    z = np.empty((len(rows), columns.shape[1]))
    for i, j in itertools.product(*map(range, z.shape)):
        z[i, j] = math.fsum(a * b for a, b in zip(rows[i], columns[:, j], strict=True))
    return z.reshape((*x.shape[:-1], *y.shape[1:]))


def bad(name, *pairs):
    """Operands that are refused, and the words of the error."""
    rows = [(f"{x.shape} {y.shape}", (x, y), f"{name}: {words}") for x, y, words in pairs]
    return [Bad(title, operands, {}, ShapeError, words) for title, operands, words in rows]


class TestDot(OpContract):
    function = staticmethod(tg.dot)
    reference = staticmethod(product)
    problems = of_axes("K", "K")
    conventions = [Convention("nothing", ([], []), 0.0)]
    bad_input = bad("dot", (M, V, "x: expected (K,)"), (V, V[:2], "y: expected (K,) with K = 3"))


class TestMv(OpContract):
    function = staticmethod(tg.mv)
    reference = staticmethod(product)
    problems = of_axes("MK", "K")
    conventions = [Convention("nothing", (np.ones((2, 0)), []), [0.0, 0.0])]
    bad_input = bad("mv", (V, V, "x: expected (M, K)"), (M, V[:1], "y: expected (K,) with K = 3"))


class TestMm(OpContract):
    function = staticmethod(tg.mm)
    reference = staticmethod(product)
    problems = of_axes("MK", "KN")
    conventions = [Convention("nothing", (np.ones((1, 0)), np.ones((0, 1))), [[0.0]])]
    bad_input = bad("mm", (M, V, "y: expected (K, N), got (3,)"), (S, S, "x: expected (M, K)"))


class TestBmm(OpContract):
    function = staticmethod(tg.bmm)
    reference = staticmethod(product)
    problems = of_axes("BMK", "BKN")
    conventions = [Convention("nothing", (S[:0], S[:0]), S[:0])]
    bad_input = bad("bmm", (M, M, "x: expected (B, M, K)"), (S, S[:1], "y: expected (B, K, N)"))


class TestOuter(OpContract):
    function = staticmethod(tg.outer)
    reference = staticmethod(lambda x, y: np.array([[a * b for b in y] for a in x]))
    problems = of_axes("M", "N").map(lambda problem: problem._replace(carries=(True, False)))
    conventions = [Convention("infinite", ([np.inf], [0.0, 1.0]), [[np.nan, np.inf]])]
    bad_input = bad("outer", (M, V, "x: expected (M,)"), (V, M, "y: expected (N,)"))


@pytest.mark.parametrize("function, x", [(tg.mm, M), (tg.dot, V), (tg.outer, V)])
def test_dtypes_promote(function, x):
    assert function(x.astype(np.float32), x).dtype == np.float64
