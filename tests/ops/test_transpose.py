"""transpose against loops over elements."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.errors import DtypeError, ShapeError

X = np.ones((2, 3, 4))


@st.composite
def permutation_problems(draw):
    """One array, and its axes in any order, some of them counted from the end; or None."""
    shape = draw(shapes())
    order = draw(st.permutations(range(len(shape))))
    axes = tuple(a - len(shape) if draw(st.booleans()) else a for a in order)
    kwargs = {"axes": draw(st.sampled_from([axes, None]))}
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,) if shape else None)


class TestTranspose(OpContract):
    function = staticmethod(tg.transpose)
    reference = staticmethod(reference.transpose)
    problems = permutation_problems()
    bad_input = [
        Bad("too few", (X, (1, 0)), {}, ShapeError, "each of the 3 axes of x exactly once"),
        Bad("twice", (X, (0, 1, -2)), {}, ShapeError, "got (0, 1, -2) for x of rank 3"),
        Bad("out of range", (X, (0, 1, 3)), {}, ShapeError, "a permutation of (0, 1, 2)"),
        Bad("below range", (X, (0, 1, -4)), {}, ShapeError, "each of the 3 axes"),
        Bad("one int", (X, 1), {}, ShapeError, "each of the 3 axes"),
        Bad("floats", (X, (0, 1, 2.0)), {}, DtypeError, "a tuple of ints or None"),
    ]

    @given(problem=permutation_problems())
    def test_output_and_gradient_are_views(self, problem):
        (x,) = problem.args
        node = tg.Tensor(x, requires_grad=True)
        y = tg.transpose(node, **problem.kwargs)
        gy = np.ones(y.shape)
        (gx,) = y.op.backward(None, gy, y.saved, (True,))
        assert np.shares_memory(y.value, node.value) and np.shares_memory(gx, gy)

    def test_as_methods(self):
        x = tg.Tensor(X)
        assert x.T.shape == x.transpose().shape == (4, 3, 2)
        assert x.transpose(1, 0, 2).shape == x.transpose((1, 0, 2)).shape == (3, 2, 4)

    def test_integers(self):
        assert tg.transpose(np.arange(4).reshape(1, 4)).dtype == np.int64
