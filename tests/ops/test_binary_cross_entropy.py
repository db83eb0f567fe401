"""binary_cross_entropy against a loop over elements, and its limits at probabilities 0 and 1."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import LARGE_PAIRS, NOTHING, numbers, reductions, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.memory import Memory
from tinygraph.ops.losses.binary_cross_entropy import BinaryCrossEntropy


@st.composite
def probability_problems(draw):
    """Probabilities away from 0 and 1, where slopes are steep; labels between; perhaps weights."""
    shape = draw(shapes(min_dims=1))
    arrays = numbers(draw(seeds), shape, 0.05, 0.95), numbers(draw(seeds), shape, 0.02, 0.98)
    if draw(st.booleans()):
        weight = numbers(draw(seeds), draw(st.sampled_from([shape, shape[1:]])), 0.5, 2)
        return Problem((*arrays, weight), {"reduction": draw(reductions)})
    return Problem(arrays, {"reduction": draw(reductions)}, (True, True))


class TestBinaryCrossEntropy(OpContract):
    function = staticmethod(tg.binary_cross_entropy)
    reference = staticmethod(reference.binary_cross_entropy)
    problems = probability_problems()
    large_problems = LARGE_PAIRS
    conventions = NOTHING
    bad_input = [
        Bad("above 1", ([[0.5, 1.5]], [[1.0, 1.0]]), {}, ArgumentError, "got 1.5 at index (0, 1)"),
        Bad("below 0", ([-0.5], [1.0]), {}, ArgumentError, "tg.binary_cross_entropy_with_logits"),
        Bad("infinite", ([np.inf, np.nan], [1.0, 1.0]), {}, ArgumentError, "got inf at index (0,)"),
        Bad("column and row", (np.ones((3, 1)), np.ones(3)), {}, ShapeError, "would give (N, N)"),
        Bad("label above 1", ([0.5], [1.5]), {}, ArgumentError, "y: expected labels from 0 to 1"),
        Bad("label below 0", ([0.5], [-1.0]), {}, ArgumentError, "got -1.0 at index (0,)"),
        Bad("weight", ([0.5], [0.5], np.ones(2)), {}, ShapeError, "weight"),
        Bad("integers", ([0], [1]), {}, DtypeError, "x: expected float32 or float64"),
        Bad(
            "reduction",
            ([0.5], [1.0]),
            {"reduction": "avg"},
            ArgumentError,
            "'mean', 'sum' or 'none'",
        ),
    ]

    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_finite_at_0_and_1(self, dtype, device):
        x = tg.Tensor([0.0, 0.0, 1.0, 1.0], dtype=dtype, requires_grad=True, device=device)
        y = tg.Tensor([0.0, 1.0, 0.0, 1.0], dtype=dtype, requires_grad=True, device=device)
        loss = tg.binary_cross_entropy(x, y, reduction="none")
        np.testing.assert_array_equal(loss.value, [0, 100, 100, 0])
        loss.backward(np.ones(4))
        np.testing.assert_array_equal(x.grad, np.array([0, -1, 1, 0], dtype) * x.dtype.type(1e12))
        np.testing.assert_array_equal(y.grad, [100, 100, -100, -100])

    def test_nan_propagates(self, device):
        x = tg.Tensor([np.nan, 0.5], device=device)
        loss = tg.binary_cross_entropy(x, tg.ones(2, device=device), reduction="none")
        np.testing.assert_allclose(loss.value, [np.nan, np.log(2)], rtol=1e-6)

    @pytest.mark.parametrize("label", [-0.5, 1.5, np.inf, np.nan])
    def test_the_kernel_gives_nan_for_a_label_out_of_range(self, label):
        """The op refuses such labels where it can see them; on a GPU nothing waits for that."""
        x, y = np.float32([0.5, 0.5, 0.5]), np.float32([label, 0, 1])
        mem = Memory(tg.Tensor(0.0, device="emulator").device, (False, False))
        with tg.cuda.checking():
            loss, _ = BinaryCrossEntropy("none").forward_kernel(mem, x, y)
        np.testing.assert_allclose(loss, [np.nan, np.log(2), np.log(2)], rtol=1e-6)
