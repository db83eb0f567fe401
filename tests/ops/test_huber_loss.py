"""huber_loss against a loop over elements, and where it turns from a square to a line."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import LARGE_PAIRS, same_shape_problems
from tinygraph.errors import ArgumentError, DtypeError, ShapeError

deltas = st.sampled_from([{}, {"delta": 0.3}, {"delta": 2}])


class TestHuberLoss(OpContract):
    function = staticmethod(tg.huber_loss)
    reference = staticmethod(reference.huber_loss)
    problems = st.builds(
        lambda p, k: p._replace(kwargs={**p.kwargs, **k}), same_shape_problems(), deltas
    )
    large_problems = LARGE_PAIRS
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("dtypes", (np.ones(3), np.ones(3, "f4")), {}, DtypeError, "the dtype of x"),
        Bad("integers", ([1], [2]), {}, DtypeError, "huber_loss: x: expected float32 or float64"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
        Bad("delta 0", ([1.0], [2.0]), {"delta": 0}, ArgumentError, "expected a number above 0"),
        Bad("delta", ([1.0], [2.0]), {"delta": "one"}, ArgumentError, "delta: expected a number"),
    ]

    def test_at_delta_both_pieces_meet_in_value_and_slope(self, device):
        x = tg.Tensor([2.0, -2.0, 5.0, -np.inf, np.nan], requires_grad=True, device=device)
        loss = tg.huber_loss(x, tg.zeros(5, device=device), "none", delta=2.0)
        np.testing.assert_array_equal(loss.value, [2, 2, 8, np.inf, np.nan])
        loss.backward(np.ones(5))
        np.testing.assert_array_equal(x.grad, [2, -2, 2, -2, np.nan])

    def test_the_mean_of_nothing_is_nan(self, device):
        nothing = tg.Tensor(np.ones(0), device=device)
        assert np.isnan(tg.huber_loss(nothing, nothing).item())
