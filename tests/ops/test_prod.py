"""prod against loops; the gradient where one element is 0, or several; integers."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Convention, OpContract, claims_of
from tests.ops.test_sum import BAD_AXES, LARGE_SETS, X
from tests.strategies import axis_problems, seeds


def near_one(problem):
    """The same problem with numbers whose product neither vanishes nor overflows."""
    x = problem.args[0]
    return problem._replace(args=(np.sign(x) * np.exp(x / 50),))


@st.composite
def prod_problems(draw):
    """Some of the elements may be 0."""
    problem = draw(axis_problems())
    zeros = np.random.default_rng(draw(seeds)).random(problem.args[0].shape)
    x = np.where(zeros < draw(st.sampled_from([0, 0.2, 0.5])), 0, problem.args[0])
    return problem._replace(args=(x,))


def with_zeros(problem):
    """A zero in each tenth of the elements, so that sets have none, one, or several."""
    x = problem.args[0].copy()
    x.flat[3::10] = 0
    return problem._replace(args=(x,))


class TestProd(OpContract):
    function = staticmethod(tg.prod)
    reference = staticmethod(reference.product_over)
    problems = prod_problems()
    large_problems = (*map(near_one, LARGE_SETS), *map(with_zeros, map(near_one, LARGE_SETS[:5])))
    claims = claims_of(X, "axis", (1, "map"), (0, None), (None, None))
    conventions = [
        Convention("one 0", ([2.0, 0.0, 5.0],), 0.0, ([0.0, 10.0, 0.0],)),
        Convention("two", ([2.0, 0.0, 0.0],), 0.0, ([0.0, 0.0, 0.0],)),
        Convention("0 and infinity", ([np.inf, 0.0],), np.nan, ([0.0, np.inf],)),
        Convention("NaN", ([np.nan, 2.0],), np.nan, ([np.nan, np.nan],)),
        Convention("of nothing", ([],), 1.0, ([],)),
    ]
    bad_input = BAD_AXES

    @pytest.mark.parametrize("dtype", ["int8", "int32", "bool"])
    def test_integers_are_multiplied_in_64_bits(self, dtype, device):
        x = np.ones((70, 3), dtype)
        x[:40, :2] = 2
        y = tg.prod(tg.Tensor(x, device=device), axis=0)
        assert y.dtype == np.int64
        np.testing.assert_array_equal(y.value, x.prod(0, dtype=np.int64))

    def test_integers_wrap_around_as_in_numpy(self, device):
        x = np.array([2**40 + 1, 2**40 - 7, 3])
        assert tg.prod(tg.Tensor(x, device=device)).item() == np.prod(x)
        assert tg.prod(tg.tensor([3, 0, 7], device=device)).item() == 0
