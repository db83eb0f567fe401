"""cosine_similarity against loops, of vectors of zeros, and of long ones."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds
from tinygraph.base.errors import ArgumentError, ShapeError


def cosine_similarity(x, y, axis=1, eps=1e-8):
    x, y = (np.moveaxis(a, axis, -1) for a in np.broadcast_arrays(x, y))

    def length(v):
        return max(math.sqrt(math.fsum(a * a for a in v)), eps)

    z = np.empty(x.shape[:-1])
    for place in np.ndindex(z.shape):
        v, w = x[place].tolist(), y[place].tolist()
        product = math.fsum(a * b for a, b in zip(v, w, strict=True))
        z[place] = product / length(v) / length(w)
    return z


@st.composite
def pairs(draw):
    shape = [draw(st.integers(1, 4)) for _ in range(3)]
    axis = draw(st.sampled_from([0, 1, 2, -1]))
    shape[axis] += 1  # of two numbers without a direction the similarity is constant
    own = [1 if i != axis % 3 and draw(st.booleans()) else n for i, n in enumerate(shape)]
    eps = draw(st.sampled_from([{}, {"eps": 0.5}]))
    arrays = (numbers(draw(seeds), own), numbers(draw(seeds), shape))
    carries = (True, True) if axis and own[0] == shape[0] else None
    return Problem(arrays, {"axis": axis, **eps}, carries)


class TestCosineSimilarity(OpContract):
    function = staticmethod(tg.cosine_similarity)
    reference = staticmethod(cosine_similarity)
    problems = pairs()
    conventions = [
        Convention(
            "zeros", ([[0.0, 0.0]], [[3.0, 4.0]]), [0], ([[1.2, 1.6]], [[0, 0]]), {"eps": 0.5}
        ),
        Convention("both zeros", ([[0.0]], [[0.0]]), [0], ([[0]], [[0]])),
    ]
    bad_input = [
        Bad("shapes", (np.ones((2, 3)), np.ones((2, 4))), {}, ShapeError, "cosine_similarity"),
        Bad("axis", (np.ones(2), np.ones(2)), {}, ShapeError, "cosine_similarity"),
        Bad("eps", (np.ones((1, 2)),) * 2, {"eps": -1.0}, ArgumentError, "eps: expected"),
    ]

    def test_products_of_long_and_short_vectors_do_not_overflow(self, device):
        x = tg.Tensor(np.float32([[3e18, 4e18], [3e-7, 4e-7]]), device=device)
        y = tg.cosine_similarity(x, np.float32([[1e18, 0.0], [0.0, 1e18]]))
        assert y.numpy() == pytest.approx([0.6, 0.8], rel=1e-6)

    def test_broadcast_vectors(self):
        """An operand that is repeated along the axis is as long as it is then."""
        assert tg.cosine_similarity(np.ones((1, 1)), np.ones((1, 4))).item() == pytest.approx(1)

    @pytest.mark.parametrize("scale", [1e-30, 1e-23, 1e20, 1e37])
    def test_vectors_whose_squares_are_out_of_range(self, scale, device):
        """Nothing but the direction counts, and a gradient is the smaller the longer a vector."""
        v, w = np.array([[3.0, 4.0]]), np.array([[1.0, 2.0]])
        x = tg.Tensor((scale * v).astype(np.float32), requires_grad=True, device=device)
        z = tg.cosine_similarity(x, np.float32(w), eps=0.0)
        z.backward()
        assert z.item() == pytest.approx(11 / 5 / math.sqrt(5), rel=1e-6)
        slope = w / 5 / math.sqrt(5) - v * 11 / 125 / math.sqrt(5)  # w / (|v| |w|) - v z / |v|^2
        np.testing.assert_allclose(x.grad * np.float64(scale), slope, rtol=1e-5, atol=1e-7)
