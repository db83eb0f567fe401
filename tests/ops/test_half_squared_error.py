"""half_squared_error against a loop over elements."""

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import LARGE_PAIRS, NOTHING, same_shape_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError


class TestHalfSquaredError(OpContract):
    function = staticmethod(tg.half_squared_error)
    reference = staticmethod(reference.half_squared_error)
    problems = same_shape_problems()
    large_problems = LARGE_PAIRS
    conventions = NOTHING
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("integers", ([1], [2]), {}, DtypeError, "half_squared_error: x: expected float32"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
    ]

    def test_the_default_is_the_sum_and_its_gradient_is_the_error(self, device):
        x = tg.Tensor([3.0, 5.0], requires_grad=True, device=device)
        loss = tg.half_squared_error(x, tg.Tensor([1.0, 1.0], device=device))
        assert loss.item() == (4 + 16) / 2
        loss.backward()
        np.testing.assert_array_equal(x.grad, [2, 4])
