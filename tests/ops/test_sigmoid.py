"""sigmoid against its formula in Python numbers, and far from 0."""

import math

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tests.unary_contract import IntegersToFloats
from tinygraph.base.errors import DtypeError


class TestSigmoid(IntegersToFloats, OpContract):
    function = staticmethod(tg.sigmoid)
    reference = staticmethod(reference.sigmoid)
    problems = elementwise_problems()
    large_problems = (Problem((np.linspace(-4, 4, 1000),)),)
    bad_input = [
        Bad("float16", (np.ones(2, "f2"),), {}, DtypeError, "sigmoid: x: expected float32")
    ]

    def test_small_results_keep_their_digits(self, device):
        """For x far below 0 the sigmoid is exp(x), to relative precision."""
        x = np.array([-40.0, -80.0])
        expected = [math.exp(v) for v in x]
        for dtype, rtol in (("f8", 1e-15), ("f4", 1e-6)):
            y = tg.sigmoid(tg.Tensor(x, dtype=dtype, device=device))
            np.testing.assert_allclose(y.value, expected, rtol=rtol)
