"""expand against loops; its output is a view that nobody may write, and nobody does."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem, claims_of
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, ShapeError

X = np.arange(3.0).reshape(3, 1)


@st.composite
def expand_problems(draw):
    """Axes of size 1 that are expanded or kept, others kept by their size or by -1, new axes."""
    shape = draw(shapes(max_dims=3, max_side=3))
    sizes = [draw(st.sampled_from([n, -1] if n > 1 else [1, -1, 0, 2, 3])) for n in shape]
    new = draw(shapes(max_dims=2, max_side=3))
    carries = (True,) if shape else None
    return Problem((numbers(draw(seeds), shape),), {"shape": (*new, *sizes)}, carries)


def repeated(shape, *expanded):
    """A problem with so many copies that the gradient is summed in chunks."""
    return Problem((numbers(7, shape),), {"shape": expanded})


class TestExpand(OpContract):
    function = staticmethod(tg.expand)
    reference = staticmethod(reference.expand)
    problems = expand_problems()
    large_problems = (
        repeated((), 40_000),
        repeated((1, 33), 3000, 33),
        repeated((5, 1), 5, 9000),
        repeated((3, 1), 1500, 3, 7),
        repeated((2, 1, 2, 1, 2, 1), 2, 3, 2, 3, 2, 3),
        repeated((2, 1, 2, 1, 2, 1, 2, 1), 2, 3, 2, 3, 2, 3, 2, 3),
        repeated((700, 1), 700, 1),
    )
    claims = claims_of(
        X, "shape", ((-1, 4), "map"), ((-1, -1), "map"), ((3, 4), None), ((2, -1, 4), None)
    )
    bad_input = [
        Bad(
            "size",
            (X, (2, 4)),
            {},
            ShapeError,
            "3 or -1 on axis 0, for only a size of 1 can be expanded, got 2 in (2, 4)",
        ),
        Bad("behind a new axis", (X, (2, 4, 4)), {}, ShapeError, "3 or -1 on axis 1"),
        Bad("shrink", (X, (1, 1)), {}, ShapeError, "3 or -1 on axis 0"),
        Bad("rank", (X, (3,)), {}, ShapeError, "a size for each of the 2 axes of x"),
        Bad("new -1", (X, (-1, 3, 1)), {}, ShapeError, "new axes, which cannot be -1"),
        Bad("-2", (X, (-2, 1)), {}, ShapeError, "sizes of 0 or more, or -1"),
        Bad("float", (X, (3.0, 1)), {}, ArgumentError, "an int or a tuple of ints"),
    ]

    def test_nothing_is_copied_and_nothing_can_be_written(self):
        x = tg.Tensor(X)
        y = tg.expand(x, (2, -1, 1000))
        assert np.shares_memory(y.value, x.value) and y.value.strides == (0, 8, 0)
        with pytest.raises(ValueError, match="read-only"):
            y.value[0] = 1

    def test_later_ops_take_the_view(self):
        x = tg.Tensor(X, requires_grad=True)
        y = tg.expand(x, (-1, 2))
        z = (tg.relu(y) + y * y).reshape(-1).clip(max=100)
        z.backward(np.ones(6))
        np.testing.assert_array_equal(x.grad, np.where(X > 0, 2 + 4 * X, 0))

    def test_another_batch_size_in_the_same_graph(self):
        x = tg.Tensor(X, name="x")
        (y,) = tg.Graph(tg.expand(x, (-1, 2))).forward({"x": np.ones((5, 1))})
        assert y.shape == (5, 2)
