"""isnan, isinf and isfinite against Python's math, and of integers."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract
from tests.reference import elementwise
from tests.strategies import elementwise_problems
from tinygraph.base.errors import DtypeError

SPECIAL = [0.0, -1.5, math.nan, math.inf, -math.inf]


def _with_special(problem, numbers):
    x = problem.args[0].copy()
    x.flat[: len(numbers)] = numbers[: x.size]
    return problem._replace(args=(x,))


class Question:
    """What the contracts of the three have in common."""

    problems = st.builds(_with_special, elementwise_problems(), st.permutations(SPECIAL))
    differentiable = False
    bad_input = [Bad("text", ("ab",), {}, DtypeError, "data: expected floats")]


class TestIsnan(Question, OpContract):
    function = staticmethod(tg.isnan)
    reference = staticmethod(lambda x: elementwise(math.isnan, x))
    conventions = [Convention("special", (SPECIAL,), [0, 0, 1, 0, 0])]


class TestIsinf(Question, OpContract):
    function = staticmethod(tg.isinf)
    reference = staticmethod(lambda x: elementwise(math.isinf, x))
    conventions = [Convention("special", (SPECIAL,), [0, 0, 0, 1, 1])]


class TestIsfinite(Question, OpContract):
    function = staticmethod(tg.isfinite)
    reference = staticmethod(lambda x: elementwise(math.isfinite, x))
    conventions = [Convention("special", (SPECIAL,), [1, 1, 0, 0, 0])]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_are_finite(dtype, device):
    x = tg.Tensor(np.array([0, 1], dtype), device=device)
    assert tg.isfinite(x).numpy().all()
    assert not tg.isnan(x).numpy().any() and not tg.isinf(x).numpy().any()
