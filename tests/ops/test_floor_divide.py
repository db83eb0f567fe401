"""floor_divide and remainder against Python's integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import broadcastable_problems
from tinygraph.base.errors import ArgumentError, DtypeError, GraphError, ShapeError


def in_loops(function):
    """The function of exact fractions, element by element."""

    def loops(x, y):
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        pairs = zip(*(np.broadcast_to(a, shape).ravel().tolist() for a in (x, y)), strict=True)
        found = [float(function(Fraction(a), Fraction(b))) for a, b in pairs]
        return np.array(found, np.result_type(x, y)).reshape(shape)

    return staticmethod(loops)


@st.composite
def apart(draw, problems):
    """Divisors of both signs, and quotients that lie far from where the floor jumps."""
    problem = draw(problems)
    x, y = problem.args
    y = np.where(np.abs(y) < 0.5, 1.0, y)
    shape = np.broadcast_shapes(x.shape, y.shape)
    if shape != x.shape:
        x = np.zeros(shape) + x
        carries = None
    else:
        carries = problem.carries
    x = y * (np.floor(x / y) + 0.25 + 0.5 * (x / y - np.floor(x / y)))
    return problem._replace(args=(x, y), carries=carries)


LARGE = Problem((np.linspace(-50, 50, 700).reshape(350, 2), np.array([-3.0, 7.0])))


class Division:
    """What both contracts have in common."""

    problems = apart(broadcastable_problems(-9, 9))
    large_problems = (LARGE,)
    bad_input = [
        Bad("shapes", (np.ones((2, 3)), np.ones(2)), {}, ShapeError, "(2, 3) and (2,)"),
        Bad("bools", ([True], [True]), {}, DtypeError, "x: expected float32, float64 or an int"),
        Bad("by 0", ([1, 2], [1, 0]), {}, ArgumentError, "y: expected integers that are not 0"),
    ]


class TestFloorDivide(Division, OpContract):
    function = staticmethod(tg.floor_divide)
    reference = in_loops(lambda a, b: math.floor(a / b))
    differentiable = False
    conventions = [
        Convention("signs", ([7, -7, 7, -7], [2, 2, -2, -2]), value=[3, -4, -4, 3]),
        Convention("by 0", ([1.0, -1.0], [0.0, 0.0]), value=[np.inf, -np.inf]),
    ]

    def test_the_quotient_is_that_of_the_exact_numbers(self, device):
        """0.1 in float32 is a little more than a tenth: it goes 9 times into 1."""
        x = tg.Tensor([1.0], device=device)
        assert (x // 0.1).numpy().tolist() == [9]

    def test_has_no_gradient(self):
        x = tg.Tensor([3.0], requires_grad=True)
        with pytest.raises(GraphError, match="floor_divide: not differentiable"):
            (x // 2).sum().backward()


class TestRemainder(Division, OpContract):
    function = staticmethod(tg.remainder)
    reference = in_loops(lambda a, b: a - b * math.floor(a / b))
    conventions = [
        Convention("signs", ([7, -7, 7, -7], [2, 2, -2, -2]), value=[1, 1, -1, -1]),
        Convention("by 0", ([1.0], [0.0]), value=[np.nan]),
    ]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_kernels_of_integers_at_the_ends_of_their_range(kernel_device, dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, low + 1, 0, 5, high], dtype)
    y = np.array([[1], [3], [high]] + [[-3], [low]] * (low < 0), dtype)
    there = tg.Tensor(x, device=kernel_device)
    expected = [[divmod(a, b) for a in x.tolist()] for b in y.tolist() for b in b]
    assert (there // y).numpy().tolist() == [[q for q, _ in row] for row in expected]
    assert (there % y).numpy().tolist() == [[r for _, r in row] for row in expected]


def test_the_least_integer_by_minus_1(kernel_device):
    x = tg.Tensor([-(2**31), 6], dtype="int32", device=kernel_device)
    assert (x // -1).numpy().tolist() == [-(2**31), -6] and (x % -1).numpy().tolist() == [0, 0]


def test_operators_on_both_sides():
    x = tg.tensor([3, -3])
    assert (7 // x).tolist() == [2, -3] and (7 % x).tolist() == [1, -2]
    x //= 2
    assert x.tolist() == [1, -2]
    x %= 3
    assert x.tolist() == [1, 1] and (tg.tensor([5]) // 2.0).dtype == np.float32
