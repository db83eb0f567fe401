"""count_nonzero, any and all against loops; every dtype, and sets without an element."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Convention, OpContract, claims_of
from tests.ops.test_sum import BAD_AXES, LARGE_SETS, X
from tests.strategies import axis_problems, seeds


def with_zeros(problem, share, seed):
    """The same problem where so many of the elements are 0, of either sign."""
    x = problem.args[0]
    rng = np.random.default_rng(seed)
    zeros = rng.choice([0.0, -0.0], x.shape)
    return problem._replace(args=(np.where(rng.random(x.shape) < share, zeros, x),))


@st.composite
def counting_problems(draw):
    return with_zeros(draw(axis_problems()), draw(st.sampled_from([0, 0.3, 0.7, 1])), draw(seeds))


class Counting:
    """What the three have in common."""

    differentiable = False
    problems = counting_problems()
    large_problems = tuple(with_zeros(problem, 0.5, 0) for problem in LARGE_SETS)
    bad_input = BAD_AXES

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool", "float32"])
    def test_every_dtype(self, dtype, device):
        x = np.array([[0, 2, 0], [0, 0, 0], [3, 1, 255]]).astype(dtype)
        y = self.function(tg.Tensor(x, device=device), axis=1)
        expected = getattr(np, self.function.__name__)(x, axis=1)
        np.testing.assert_array_equal(y.value, expected)
        assert y.dtype == expected.dtype and not y.requires_grad

    def test_large_masks(self, device):
        for share in (0, 1e-4, 1 - 1e-4, 1):
            x = np.random.default_rng(0).random((3, 30_000)) < share
            y = self.function(tg.Tensor(x, device=device), axis=1)
            np.testing.assert_array_equal(y.value, getattr(np, self.function.__name__)(x, axis=1))


class TestCountNonzero(Counting, OpContract):
    function = staticmethod(tg.count_nonzero)
    reference = staticmethod(reference.count_nonzero)
    claims = claims_of(X, "axis", (1, "map"), (0, None), (None, None))
    conventions = [
        Convention("NaN and -0", ([np.nan, -0.0, np.inf],), 2),
        Convention("nothing", ([],), 0),
    ]


class TestAny(Counting, OpContract):
    function = staticmethod(tg.any)
    reference = staticmethod(reference.any_over)
    conventions = [
        Convention("NaN", ([np.nan, 0.0],), True),
        Convention("-0", ([-0.0, 0.0],), False),
        Convention("nothing", ([],), False),
    ]


class TestAll(Counting, OpContract):
    function = staticmethod(tg.all)
    reference = staticmethod(reference.all_over)
    conventions = [
        Convention("NaN", ([np.nan, 1.0],), True),
        Convention("-0", ([-0.0, 1.0],), False),
        Convention("nothing", ([],), True),
    ]
