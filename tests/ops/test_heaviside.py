"""heaviside against its reference; its gradient is zero, everywhere and on purpose."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import ArgumentError, DtypeError

values = st.sampled_from([{}, {"value": 0}, {"value": 0.5}, {"value": -2.0}])


class TestHeaviside(OpContract):
    function = staticmethod(tg.heaviside)
    reference = staticmethod(reference.heaviside)
    large_problems = (Problem((np.sin(np.arange(700.0)),)),)
    problems = st.builds(lambda p, k: p._replace(kwargs=k), elementwise_problems(), values)
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "heaviside: x: expected float32 or float64"),
        Bad("value", ([1.0], np.nan), {}, ArgumentError, "value: expected a finite number"),
    ]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_kernel_at_the_step_nan_and_the_infinities(self, kernel_device, dtype):
        values = np.array([-np.inf, -1e-40, -0.0, 0.0, 1e-40, np.inf, np.nan], dtype)
        x = tg.Tensor(values, device=kernel_device)
        np.testing.assert_array_equal(
            tg.heaviside(x, 0.25).numpy(), [0, 0, 0.25, 0.25, 1, 1, np.nan]
        )
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(tg.heaviside(x, 1e300).numpy()[3], dtype(1e300))

    def test_the_gradient_is_zero_also_at_the_step(self):
        x = tg.Tensor([-1.0, 0.0, 1.0], requires_grad=True)
        tg.heaviside(x).backward(np.full(3, np.inf))
        np.testing.assert_array_equal(x.grad, np.zeros(3))
