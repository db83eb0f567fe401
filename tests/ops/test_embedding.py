"""embedding against loops: repeated indices, bad indices, every integer dtype."""

import numpy as np
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

W = np.arange(6.0).reshape(3, 2)


@st.composite
def lookup_problems(draw):
    """Few rows and several indices, so that indices repeat."""
    rows, features = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    indices = np.random.default_rng(draw(seeds)).integers(0, rows, draw(shapes(max_dims=3)))
    indices = np.asarray(indices, draw(st.sampled_from(["i1", "i4", "i8", "u1", "u8"])))
    carries = (True, False) if indices.ndim else None
    return Problem((indices, numbers(draw(seeds), (rows, features))), {}, carries)


class TestEmbedding(OpContract):
    function = staticmethod(tg.embedding)
    reference = staticmethod(reference.embedding)
    problems = lookup_problems()
    large_problems = (
        Problem((np.random.default_rng(0).integers(0, 300, (20, 45)), numbers(1, (300, 3)))),
        Problem((np.random.default_rng(2).integers(0, 2, 9000), numbers(3, (2, 1)))),
    )
    claims = [  # rows of the table are no samples
        (Problem((np.zeros(3, int), W), {}, (True, False)), "map"),
        (Problem((np.zeros(3, int), W), {}, (False, True)), None),
    ]
    bad_input = [
        Bad(
            "too large",
            ([[0, 1], [2, 3]], W),
            {},
            ArgumentError,
            "numbers from 0 to 2, the rows of weight, got 3 at index (1, 1)",
        ),
        Bad("negative", ([0, -1], W), {}, ArgumentError, "got -1 at index (1,)"),
        Bad("a scalar", (3, W), {}, ArgumentError, "got 3 at index ()"),
        Bad("huge", (np.array([2**64 - 1], np.uint64), W), {}, ArgumentError, "at index (0,)"),
        Bad("no rows", ([0], W[:0]), {}, ArgumentError, "none, for weight has no rows"),
        Bad("swapped", (W, [0, 1]), {}, DtypeError, "indices come first"),
        Bad("bools", ([True], W), {}, DtypeError, "indices: expected integers, got bool"),
        Bad("integer weight", ([0], W.astype(int)), {}, DtypeError, "weight: expected float32"),
        Bad("flat weight", ([0], W[0]), {}, ShapeError, "weight: expected 2 axes (V, D)"),
    ]

    def test_repeated_indices_add_up_in_order(self, device):
        """In float32, 1 + 1e8 - 1e8 is 0 from left to right; another order would give 1."""
        weight = tg.Tensor(np.zeros((2, 1), np.float32), requires_grad=True, device=device)
        y = tg.embedding([1, 1, 1], weight)
        y.backward(np.array([[1], [1e8], [-1e8]], np.float32))
        np.testing.assert_array_equal(weight.device.to_numpy(weight.grad), [[0], [0]])
