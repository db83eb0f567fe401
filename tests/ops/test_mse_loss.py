"""mse_loss against a loop over elements."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import same_shape_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError


class TestMseLoss(OpContract):
    function = staticmethod(tg.mse_loss)
    reference = staticmethod(reference.mse_loss)
    problems = same_shape_problems()
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("dtypes", (np.ones(3), np.ones(3, "f4")), {}, DtypeError, "the dtype of x"),
        Bad("integers", ([1], [2]), {}, DtypeError, "float32 or float64"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
    ]

    def test_the_mean_of_nothing_is_nan(self):
        assert np.isnan(tg.mse_loss(np.ones(0), np.ones(0)).item())
