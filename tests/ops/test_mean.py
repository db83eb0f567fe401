"""mean against loops over the elements that meet."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.ops.test_sum import BAD_AXES, LARGE_SETS
from tests.strategies import axis_problems
from tinygraph.base.errors import DtypeError


class TestMean(OpContract):
    function = staticmethod(tg.mean)
    reference = staticmethod(reference.mean_over)
    problems = axis_problems()
    large_problems = LARGE_SETS
    bad_input = [
        *BAD_AXES,
        Bad("float16", (np.ones(2, "f2"),), {}, DtypeError, "float32 or float64, got float16"),
    ]

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
    def test_of_integers_and_bools_is_float32(self, device, dtype):
        y = tg.mean(tg.Tensor(np.array([[0, 1], [1, 1]], dtype), device=device), axis=0)
        assert y.dtype == np.float32 and y.numpy().tolist() == [0.5, 1.0]

    def test_the_mean_of_nothing_is_nan(self, device):
        """pytest turns warnings into errors here."""
        x = tg.Tensor(np.ones((0, 3)), requires_grad=True, device=device)
        assert np.isnan(tg.mean(x, 0).value).all()
        assert tg.mean(x, 1).shape == (0,)
        tg.mean(x).backward()
        assert x.grad.shape == (0, 3)
