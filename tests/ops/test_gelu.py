"""gelu against math.erfc and math.tanh, and the infinities."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import ArgumentError, DtypeError
from tinygraph.ops.elementwise.gelu import BLOCK

gates = st.sampled_from([{}, {"approximate": "none"}, {"approximate": "tanh"}])


class TestGelu(OpContract):
    function = staticmethod(tg.gelu)
    reference = staticmethod(reference.gelu)
    problems = st.builds(
        lambda p, k: p._replace(kwargs=k), elementwise_problems(low=-9, high=9), gates
    )
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    conventions = [
        Convention("its cube overflows", ([1e200],), [1e200], ([1],), {"approximate": gate})
        for gate in ("none", "tanh")
    ]
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "gelu: x: expected float32 or float64"),
        Bad("gate", ([1.0], "tan"), {}, ArgumentError, "did you mean 'tanh'?"),
        Bad("gate None", ([1.0], None), {}, ArgumentError, "'none' or 'tanh', got None"),
    ]

    @pytest.mark.parametrize("x", [-35.0, -9.0, -5.7, -5.6, -0.67, -0.66, 1e-9, 0.66, 6.0])
    def test_small_results_keep_their_digits(self, x, device):
        expected = x * math.erfc(-x / math.sqrt(2)) / 2
        y = tg.gelu(tg.Tensor(np.array(x), device=device))
        assert y.item() == pytest.approx(expected, rel=1e-12, abs=0)

    @pytest.mark.parametrize("approximate", ["none", "tanh"])
    @pytest.mark.parametrize("transposed", [False, True])
    def test_arrays_of_more_than_one_block(self, approximate, transposed):
        values = np.random.default_rng(0).standard_normal((3, BLOCK - 7))
        x = tg.Tensor(values, requires_grad=True)
        y = tg.gelu(tg.transpose(x) if transposed else x, approximate)
        expected = reference.gelu(values, approximate)
        np.testing.assert_allclose(y.value, expected.T if transposed else expected, rtol=1e-11)
        y.backward(np.ones(y.shape))
        step = 1e-6
        slope = reference.gelu(values + step, approximate) - expected
        np.testing.assert_allclose(x.grad, slope / step, rtol=1e-5, atol=1e-5)
