"""leaky_relu against its reference, and its conventions at 0, NaN and the infinities."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.errors import ArgumentError, DtypeError

slopes = st.sampled_from(
    [
        {},
        {"negative_slope": 0.3},
        {"negative_slope": -0.5},
        {"negative_slope": 2},
        {"negative_slope": 0.0},
    ]
)


class TestLeakyRelu(OpContract):
    function = staticmethod(tg.leaky_relu)
    reference = staticmethod(reference.leaky_relu)
    problems = st.builds(lambda p, k: p._replace(kwargs=k), elementwise_problems(), slopes)
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "leaky_relu: x: expected float32 or float64"),
        Bad("slope nan", ([1.0], np.nan), {}, ArgumentError, "negative_slope: expected a finite"),
        Bad("slope word", ([1.0], "small"), {}, ArgumentError, "got 'small'"),
        Bad("slope array", ([1.0], [0.1, 0.2]), {}, ArgumentError, "a finite number"),
    ]

    @pytest.mark.parametrize("slope", [0.0, 0.1, 0.7, -3.0])
    def test_the_derivative_is_1_above_0_and_the_slope_elsewhere_exactly(self, slope, device):
        values = [-np.inf, -2.0, -0.0, 0.0, 1e-30, np.inf]
        x = tg.Tensor(values, dtype="f8", requires_grad=True, device=device)
        tg.leaky_relu(x, slope).backward(np.ones(6))
        np.testing.assert_array_equal(x.grad, [slope] * 4 + [1, 1])

    def test_infinities_and_nan(self, device):
        y = tg.leaky_relu(tg.Tensor([-np.inf, np.nan, np.inf], device=device), 0.5)
        np.testing.assert_array_equal(y.value, [-np.inf, np.nan, np.inf])
        assert tg.leaky_relu(tg.Tensor([np.inf], device=device), 0.0).item() == np.inf

    def test_a_numpy_slope_does_not_promote(self):
        assert tg.leaky_relu([1.0], np.float64(0.1)).dtype == np.float32
