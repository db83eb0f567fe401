"""tile and repeat_interleave against loops; numbers of 0, new axes, a number for each element."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))


@st.composite
def tile_problems(draw):
    """One array and numbers for its last axes, for all, or for more; samples stay where it is 1."""
    shape = draw(shapes(max_dims=3))
    counts = draw(st.lists(st.integers(0, 3), max_size=len(shape) + 1))
    whole = len(counts) < len(shape) or counts[:1] == [1]
    carries = (True,) if shape and len(counts) <= len(shape) and whole else None
    return Problem((numbers(draw(seeds), shape),), {"dims": tuple(counts)}, carries)


@st.composite
def interleave_problems(draw):
    shape = draw(shapes(min_dims=1, max_dims=3))
    axis = draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    length = int(np.prod(shape)) if axis is None else shape[axis]
    each = st.lists(st.integers(0, 2), min_size=length, max_size=length)
    repeats = draw(st.one_of(st.integers(0, 3), each))
    carries = (True,) if axis is not None and axis % len(shape) else None
    kwargs = {"repeats": repeats, "axis": axis}
    return Problem((numbers(draw(seeds), shape),), kwargs, carries)


class TestTile(OpContract):
    function = staticmethod(tg.tile)
    reference = staticmethod(reference.tile)
    problems = tile_problems()
    large_problems = (Problem((np.arange(300.0).reshape(10, 30),), {"dims": (2, 1, 3)}),)
    conventions = [
        Convention("a number", (3.0,), [3.0, 3.0], (2.0,), {"dims": 2}),
        Convention("no time", ([3.0],), [], ([0.0],), {"dims": 0}),
    ]
    bad_input = [
        Bad("negative", (X, (1, -1)), {}, ShapeError, "tile: dims: expected numbers of 0 or more"),
        Bad("a float", (X, 2.0), {}, ArgumentError, "an int or a tuple of ints, got 2.0"),
    ]

    def test_the_method_repeat_is_that_of_pytorch(self):
        assert tg.Tensor(X).repeat(2, 1).shape == tg.Tensor(X).repeat((2, 1)).shape == (4, 3)
        assert tg.Tensor(X).repeat(2, 1, 1).shape == (2, 2, 3)

    def test_a_graph_of_it_takes_other_batches(self, device):
        x = tg.Tensor(X, device=device, name="x")
        y = tg.tile(x, (1, 2))
        tg.Graph(y).forward({"x": np.arange(12.0).reshape(4, 3)})
        np.testing.assert_array_equal(y.value, np.tile(np.arange(12.0).reshape(4, 3), (1, 2)))


class TestRepeatInterleave(OpContract):
    function = staticmethod(tg.repeat_interleave)
    reference = staticmethod(reference.repeat_interleave)
    problems = interleave_problems()
    conventions = [
        Convention("a number", (3.0,), [3.0, 3.0], (2.0,), {"repeats": 2}),
        Convention("not at all", ([3.0, 4.0],), [4.0], ([0.0, 1.0],), {"repeats": [0, 1]}),
    ]
    bad_input = [
        Bad("negative", (X, -1), {}, ShapeError, "repeats: expected numbers of 0 or more"),
        Bad("too few", (X, [1, 2], 1), {}, ShapeError, "one for each of 3 elements, got 2 numbers"),
        Bad("none", (X, [], 1), {}, ShapeError, "one for each of 3 elements, got 0 numbers"),
        Bad("a float", (X, 2.0), {}, ArgumentError, "an int or a tuple of ints, got 2.0"),
        Bad("axis", (X, 2, 2), {}, ShapeError, "an axis from -2 to 1, got 2"),
        Bad("a float axis", (X, 2, 1.0), {}, DtypeError, "axis: expected an int, got 1.0"),
    ]

    @pytest.mark.parametrize("kind", [np.array, tg.tensor, tuple])
    def test_numbers_of_any_kind(self, kind):
        y = tg.repeat_interleave(np.arange(3.0), kind([2, 0, 1]))
        assert y.value.tolist() == [0, 0, 2]
