"""binary_cross_entropy_with_logits against a loop over elements, and with large logits."""

import math

import numpy as np

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import LARGE_PAIRS, same_shape_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError


class TestBinaryCrossEntropyWithLogits(OpContract):
    function = staticmethod(tg.binary_cross_entropy_with_logits)
    reference = staticmethod(reference.binary_cross_entropy_with_logits)
    problems = same_shape_problems()
    large_problems = LARGE_PAIRS
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("integers", ([0], [1]), {}, DtypeError, "x: expected float32 or float64"),
        Bad("reduction", ([0.5], [1.0], "sun"), {}, ArgumentError, "did you mean 'sum'?"),
    ]

    def test_small_losses_keep_their_digits(self, device):
        x = tg.Tensor(np.array([50.0, -50.0]), device=device)
        y = tg.Tensor(np.array([1.0, 0.0]), device=device)
        loss = tg.binary_cross_entropy_with_logits(x, y, "none")
        np.testing.assert_allclose(loss.value, [math.exp(-50)] * 2, rtol=1e-14)
