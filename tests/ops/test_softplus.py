"""softplus against its reference, its threshold, and the ends of the line."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import ArgumentError, DtypeError

settings = st.sampled_from(
    [{}, {"beta": 3}, {"beta": 0.5}, {"beta": 2.0, "threshold": 1.0}, {"threshold": 0}]
)


class TestSoftplus(OpContract):
    function = staticmethod(tg.softplus)
    reference = staticmethod(reference.softplus)
    problems = st.builds(lambda p, k: p._replace(kwargs=k), elementwise_problems(), settings)
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "softplus: x: expected float32 or float64"),
        Bad("beta 0", ([1.0], 0), {}, ArgumentError, "beta: expected a number above 0, got 0"),
        Bad("beta < 0", ([1.0], -1.0), {}, ArgumentError, "beta: expected a number above 0"),
        Bad("threshold", ([1.0], 1.0, -2), {}, ArgumentError, "at least 0, got -2"),
        Bad("threshold nan", ([1.0], 1.0, np.nan), {}, ArgumentError, "at least 0, got nan"),
    ]

    def test_small_results_keep_their_digits(self, device):
        y = tg.softplus(tg.Tensor(np.array(-50.0), device=device))
        assert y.item() == pytest.approx(math.exp(-50), rel=1e-14, abs=0)

    def test_above_the_threshold_it_is_the_identity_exactly(self, device):
        x = tg.Tensor([0.1, 0.5, 0.7], dtype="f8", requires_grad=True, device=device)
        y = tg.softplus(x, beta=3.0, threshold=1.2)
        np.testing.assert_array_equal(y.value[1:], [0.5, 0.7])
        assert y.value[0] == pytest.approx(math.log1p(math.exp(0.3)) / 3, rel=1e-14)
        y.backward(np.ones(3))
        np.testing.assert_array_equal(x.grad[1:], [1, 1])
        assert x.grad[0] == pytest.approx(1 / (1 + math.exp(-0.3)), rel=1e-14)
