"""The six comparisons against Python's, with ties and NaN."""

import operator

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import broadcastable_problems
from tinygraph.base.errors import DtypeError, GraphError, ShapeError

SIGNS = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


LARGE = Problem((np.arange(700.0).reshape(350, 2) % 5, np.arange(2.0)))  # two blocks


@st.composite
def problems_with_ties(draw):
    problem = draw(broadcastable_problems(-1.5, 1.5))
    return problem._replace(args=tuple(np.round(a) for a in problem.args))


class Comparison:
    """What the contracts of the six have in common."""

    problems = problems_with_ties()
    large_problems = (LARGE,)
    differentiable = False
    bad_input = [
        Bad("shapes", (np.ones((2, 3)), np.ones(2)), {}, ShapeError, "(2, 3) and (2,)"),
        Bad("text", (np.ones(2), "ab"), {}, DtypeError, "expected"),
        Bad("nothing", (np.ones(2), None), {}, DtypeError, "got None"),
    ]


class TestLess(Comparison, OpContract):
    function = staticmethod(tg.less)
    reference = staticmethod(reference.less)


class TestLessEqual(Comparison, OpContract):
    function = staticmethod(tg.less_equal)
    reference = staticmethod(reference.less_equal)


class TestGreater(Comparison, OpContract):
    function = staticmethod(tg.greater)
    reference = staticmethod(reference.greater)


class TestGreaterEqual(Comparison, OpContract):
    function = staticmethod(tg.greater_equal)
    reference = staticmethod(reference.greater_equal)


class TestEqual(Comparison, OpContract):
    function = staticmethod(tg.equal)
    reference = staticmethod(reference.equal)


class TestNotEqual(Comparison, OpContract):
    function = staticmethod(tg.not_equal)
    reference = staticmethod(reference.not_equal)


@pytest.mark.parametrize("name", SIGNS)
def test_nan_infinity_and_zeros(device, name):
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    x, y = np.reshape(values, (5, 1)), np.array(values)
    z = getattr(tg, name)(tg.Tensor(x, device=device), y)
    assert z.numpy().tolist() == [[SIGNS[name](a, b) for b in values] for a in values]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "bool"])
def test_kernel_of_integers_and_bools(kernel_device, dtype):
    """Signed and unsigned ones, at the ends of their range."""
    ends = [False, True] if dtype == "bool" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    x, y = np.array(ends, dtype).reshape(2, 1), np.array(ends, dtype)
    z = tg.less(tg.Tensor(x, device=kernel_device), y)
    assert z.dtype == bool and z.numpy().tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize("name", SIGNS)
def test_has_no_gradient(name):
    x = tg.Tensor([1.0, 2.0], requires_grad=True)
    y = getattr(tg, name)(x, 1.5)
    assert y.dtype == bool and not y.requires_grad and y.saved is None
    with pytest.raises(GraphError, match="requires a gradient"):
        y.backward(np.ones(2))


def test_numbers_take_the_dtype_of_the_tensor():
    """0.1 rounds to the float32 on the left, as in numpy; a float64 array does not."""
    x = tg.Tensor([0.1])
    assert (x == 0.1).item() and not (x == np.array([0.1])).item()
    assert (tg.tensor([1, 2]) > 1.5).value.tolist() == [False, True]
    assert (tg.tensor([True, False]) == True).value.tolist() == [True, False]  # noqa: E712
