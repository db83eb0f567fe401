"""l1_loss against a loop over elements, and its derivative where the arrays agree."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import LARGE_PAIRS, same_shape_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError


class TestL1Loss(OpContract):
    function = staticmethod(tg.l1_loss)
    reference = staticmethod(reference.l1_loss)
    problems = same_shape_problems()
    large_problems = LARGE_PAIRS
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("dtypes", (np.ones(3), np.ones(3, "f4")), {}, DtypeError, "the dtype of x"),
        Bad("integers", ([1], [2]), {}, DtypeError, "l1_loss: x: expected float32 or float64"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
    ]

    def test_the_derivative_is_the_sign_and_0_at_0(self, device):
        x = tg.Tensor([1.0, 2.0, 3.0], requires_grad=True, device=device)
        y = tg.Tensor([2.0, 2.0, 2.0], requires_grad=True, device=device)
        tg.l1_loss(x, y, "sum").backward()
        np.testing.assert_array_equal(x.grad, [-1, 0, 1])
        np.testing.assert_array_equal(y.grad, [1, 0, -1])

    def test_the_mean_of_nothing_is_nan(self, device):
        nothing = tg.Tensor(np.ones(0), device=device)
        assert np.isnan(tg.l1_loss(nothing, nothing).item())
