"""sigmoid against its formula in Python numbers, and far from 0."""

import math

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import elementwise_problems
from tinygraph.errors import DtypeError


class TestSigmoid(OpContract):
    function = staticmethod(tg.sigmoid)
    reference = staticmethod(reference.sigmoid)
    problems = elementwise_problems()
    bad_input = [Bad("integers", ([1, 2],), {}, DtypeError, "sigmoid: x: expected float32")]

    def test_far_from_zero(self):
        x = tg.Tensor([-np.inf, -1e30, -1000.0, 1000.0, 1e30, np.inf, np.nan], requires_grad=True)
        y = tg.sigmoid(x)
        np.testing.assert_array_equal(y.value, [0, 0, 0, 1, 1, 1, np.nan])
        y.backward(np.ones(7))
        np.testing.assert_array_equal(x.grad, [0, 0, 0, 0, 0, 0, np.nan])

    def test_small_results_keep_their_digits(self):
        """For x far below 0 the sigmoid is exp(x), to relative precision."""
        x = np.array([-40.0, -80.0])
        expected = [math.exp(v) for v in x]
        np.testing.assert_allclose(tg.sigmoid(x).value, expected, rtol=1e-15)
        np.testing.assert_allclose(tg.sigmoid(x.astype("f4")).value, expected, rtol=1e-6)
