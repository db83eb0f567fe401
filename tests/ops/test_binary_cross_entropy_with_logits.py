"""binary_cross_entropy_with_logits against a loop over elements, and with large logits."""

import math

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import LARGE_PAIRS, numbers, same_shape_problems, seeds
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError


@st.composite
def weighted(draw):
    """Any logits and labels, perhaps with weights of elements or of the last axis."""
    problem = draw(same_shape_problems())
    shape, kwargs = problem.arrays[0].shape, dict(problem.kwargs)
    kinds = draw(st.sampled_from([(), ("weight",), ("pos_weight",), ("weight", "pos_weight")]))
    for name in kinds:
        of = draw(st.sampled_from([shape, shape[-1:]]))
        kwargs[name] = numbers(draw(seeds), of, 0.5, 2)
    return Problem(problem.arrays, kwargs, None if kinds else problem.carries)


class TestBinaryCrossEntropyWithLogits(OpContract):
    function = staticmethod(tg.binary_cross_entropy_with_logits)
    reference = staticmethod(reference.binary_cross_entropy_with_logits)
    problems = weighted()
    large_problems = LARGE_PAIRS
    bad_input = [
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("pos_weight", ([0.5], [0.5]), {"pos_weight": [1.0, 2.0]}, ShapeError, "pos_weight"),
        Bad("integers", ([0], [1]), {}, DtypeError, "x: expected float32 or float64"),
        Bad(
            "reduction", ([0.5], [1.0]), {"reduction": "sun"}, ArgumentError, "did you mean 'sum'?"
        ),
    ]

    def test_small_losses_keep_their_digits(self, device):
        x = tg.Tensor(np.array([50.0, -50.0]), device=device)
        y = tg.Tensor(np.array([1.0, 0.0]), device=device)
        loss = tg.binary_cross_entropy_with_logits(x, y, reduction="none")
        np.testing.assert_allclose(loss.value, [math.exp(-50)] * 2, rtol=1e-14)
