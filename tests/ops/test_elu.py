"""elu against its reference, and its conventions at 0, NaN and the infinities."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.errors import ArgumentError, DtypeError

alphas = st.sampled_from([{}, {"alpha": 0.3}, {"alpha": -0.5}, {"alpha": 2}, {"alpha": 0.0}])


class TestElu(OpContract):
    function = staticmethod(tg.elu)
    reference = staticmethod(reference.elu)
    problems = st.builds(lambda p, k: p._replace(kwargs=k), elementwise_problems(), alphas)
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "elu: x: expected float32 or float64"),
        Bad("alpha", ([1.0], np.inf), {}, ArgumentError, "elu: alpha: expected a finite number"),
        Bad("alpha None", ([1.0], None), {}, ArgumentError, "got None"),
    ]

    def test_small_results_and_small_derivatives_keep_their_digits(self, device):
        x = tg.Tensor([-1e-12, -30.0], dtype="f8", requires_grad=True, device=device)
        y = tg.elu(x)
        assert y.value[0] == pytest.approx(-1e-12, rel=1e-11, abs=0)
        y.backward([1.0, 1.0])
        assert x.grad[1] == pytest.approx(math.exp(-30), rel=1e-14, abs=0)
