"""tanh against Python's math, and far from 0."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.errors import DtypeError


class TestTanh(OpContract):
    function = staticmethod(tg.tanh)
    reference = staticmethod(reference.tanh)
    problems = elementwise_problems()
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    bad_input = [Bad("integers", ([1, 2],), {}, DtypeError, "tanh: x: expected float32 or float64")]

    def test_far_from_zero(self, device):
        values = [-np.inf, -1000.0, -0.0, 1000.0, np.inf, np.nan]
        x = tg.Tensor(values, requires_grad=True, device=device)
        y = tg.tanh(x)
        np.testing.assert_array_equal(y.value, [-1, -1, 0, 1, 1, np.nan])
        y.backward(np.ones(6))
        np.testing.assert_array_equal(x.grad, [0, 0, 1, 0, 0, np.nan])
