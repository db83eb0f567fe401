"""huber_loss against a loop over elements, and where it turns from a square to a line."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import LARGE_PAIRS, NOTHING, same_shape_problems
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

betas = st.sampled_from([{}, {"beta": 0.3}, {"beta": 2}, {"beta": 0}])
deltas = st.sampled_from([{}, {"delta": 0.3}, {"delta": 2}])


class TestHuberLoss(OpContract):
    function = staticmethod(tg.huber_loss)
    reference = staticmethod(reference.huber_loss)
    problems = st.builds(
        lambda p, k: p._replace(kwargs={**p.kwargs, **k}), same_shape_problems(), deltas
    )
    large_problems = LARGE_PAIRS
    conventions = NOTHING
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("integers", ([1], [2]), {}, DtypeError, "huber_loss: x: expected float32 or float64"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
        Bad("delta 0", ([1.0], [2.0]), {"delta": 0}, ArgumentError, "expected a number above 0"),
        Bad("delta", ([1.0], [2.0]), {"delta": "one"}, ArgumentError, "delta: expected a number"),
    ]


class TestSmoothL1Loss(OpContract):
    function = staticmethod(tg.smooth_l1_loss)
    reference = staticmethod(reference.smooth_l1_loss)
    problems = st.builds(
        lambda p, k: p._replace(kwargs={**p.kwargs, **k}), same_shape_problems(), betas
    )
    large_problems = LARGE_PAIRS
    conventions = NOTHING
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("beta", ([1.0], [2.0]), {"beta": -1}, ArgumentError, "smooth_l1_loss: beta: expected"),
        Bad("reduction", ([1.0], [2.0], "avg"), {}, ArgumentError, "'mean', 'sum' or 'none'"),
    ]
