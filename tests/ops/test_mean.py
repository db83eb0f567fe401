"""mean against loops over the elements that meet."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.ops.test_sum import BAD_AXES, LARGE_SETS
from tests.strategies import axis_problems
from tinygraph.errors import DtypeError


class TestMean(OpContract):
    function = staticmethod(tg.mean)
    reference = staticmethod(reference.mean_over)
    problems = axis_problems()
    large_problems = LARGE_SETS
    bad_input = [
        *BAD_AXES,
        Bad("integers", ([1, 2],), {}, DtypeError, "x.astype('float32')"),
        Bad("bools", ([True, False],), {}, DtypeError, "float32 or float64, got bool"),
    ]

    def test_the_mean_of_nothing_is_nan(self, device):
        """pytest turns warnings into errors here."""
        x = tg.Tensor(np.ones((0, 3)), requires_grad=True, device=device)
        assert np.isnan(tg.mean(x, 0).value).all()
        assert tg.mean(x, 1).shape == (0,)
        tg.mean(x).backward()
        assert x.grad.shape == (0, 3)
