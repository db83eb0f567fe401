"""reshape, flatten, squeeze, unsqueeze against loops, and what they promise about samples."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem, claims_of
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3, 4))


@st.composite
def reshape_problems(draw):
    """One array, its sizes regrouped in any order, and perhaps one of them left out as -1."""
    shape = draw(shapes())
    sizes = list(draw(st.permutations(shape)))
    while len(sizes) > 1 and draw(st.booleans()):
        i = draw(st.integers(0, len(sizes) - 2))
        sizes[i : i + 2] = [sizes[i] * sizes[i + 1]]
    if draw(st.booleans()):
        sizes.insert(draw(st.integers(0, len(sizes))), 1)
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    carries = (True,) if shape else None
    return Problem((numbers(draw(seeds), shape),), {"shape": tuple(sizes)}, carries)


@st.composite
def flatten_problems(draw):
    """One array, and a span of its axes, some counted from the end."""
    shape = draw(shapes())
    n = max(len(shape), 1)
    first = draw(st.integers(0, n - 1))
    last = draw(st.integers(first, n - 1))
    signs = draw(st.tuples(st.booleans(), st.booleans()))
    kwargs = {"start_dim": first - n * signs[0], "end_dim": last - n * signs[1]}
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,) if shape else None)


@st.composite
def squeeze_problems(draw):
    """One array with axes of size 1, and some of its axes, or none named; others stay."""
    shape = draw(shapes(max_side=2))
    axes = [a - len(shape) * draw(st.booleans()) for a in range(len(shape))]
    several = st.lists(st.sampled_from(axes), unique=True).map(tuple) if axes else st.just(())
    axis = draw(st.one_of(st.none(), several, *map(st.just, axes)))
    return Problem((numbers(draw(seeds), shape),), {"axis": axis}, (True,) if shape else None)


@st.composite
def unsqueeze_problems(draw):
    """One array, and one place or several for new axes, some counted from the end."""
    shape = draw(shapes(max_dims=3))
    new = draw(st.integers(0, 3))
    n = len(shape) + new
    places = draw(st.permutations(range(n)))[:new]
    axis = tuple(a - n * draw(st.booleans()) for a in places)
    kwargs = {"axis": axis[0] if new == 1 and draw(st.booleans()) else axis}
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,) if shape else None)


EMPTY = {"axis": 0, "sizes": (0, 3)}


@st.composite
def unflatten_problems(draw):
    """One array, and one axis of it as several, one of whose sizes may be left open."""
    shape = list(draw(shapes(min_dims=1, max_dims=3)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    shape[axis] = math.prod(sizes)
    if draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    kwargs = {"axis": axis, "sizes": tuple(sizes)}
    carries = (True,) if axis % len(shape) else None
    return Problem((numbers(draw(seeds), shape),), kwargs, carries)


class TestReshape(OpContract):
    function = staticmethod(tg.reshape)
    reference = staticmethod(reference.reshape)
    problems = reshape_problems()
    claims = claims_of(
        X,
        "shape",
        ((-1, 12), "map"),
        ((-1, 2, 6), "map"),
        ((2, 12), "map"),
        ((2, -1), "map"),
        ((-1, 6), "map"),  # two rows for each sample
        ((8, 3), "map"),
        ((-1,), "map"),
        ((-1, 24), None),
        ((1, 2, 12), None),
        ((1, -1, 12), None),
        ((4, -1), None),
    )
    bad_input = [
        Bad(
            "size",
            (X, (5, 5)),
            {},
            ShapeError,
            "one with 24 elements, as x of shape (2, 3, 4) has, got (5, 5), which needs 25",
        ),
        Bad("multiple", (X, (5, -1)), {}, ShapeError, "got (5, -1), which needs a multiple of 5"),
        Bad("not empty", (X, (0, -1)), {}, ShapeError, "one with 24 elements"),
        Bad("anything", (X[:0], (0, -1)), {}, ShapeError, "no -1 beside a size of 0"),
        Bad("two -1", (X, (-1, -1)), {}, ShapeError, "at most one -1"),
        Bad("-2", (X, (-2, 12)), {}, ShapeError, "sizes of 0 or more"),
        Bad("float", (X, (2.0, 12)), {}, ArgumentError, "an int or a tuple of ints"),
        Bad("None", (X, None), {}, ArgumentError, "an int or a tuple of ints"),
    ]

    def test_a_view_where_memory_allows(self):
        x = tg.Tensor(X)
        assert np.shares_memory(tg.reshape(x, -1).value, x.value)
        assert not np.shares_memory(tg.reshape(x.T, -1).value, x.value)

    def test_another_batch_size_in_the_same_graph(self):
        x = tg.Tensor(X, name="x")
        (y,) = tg.Graph(tg.reshape(x, (-1, 12))).forward({"x": np.ones((5, 3, 4))})
        assert y.shape == (5, 12)

    @pytest.mark.parametrize(
        "shape, again",
        [
            ((2, 12), (5, 12)),
            ((2, -1), (5, 12)),
            ((8, 3), (20, 3)),
            ((-1, 4), (15, 4)),
            ((1, -1, 12), (1, 5, 12)),
        ],
    )
    def test_a_size_that_is_the_batch_need_not_be_written_as_such(self, shape, again):
        y = tg.reshape(tg.Tensor(X, name="x"), shape)
        (other,) = tg.Graph(y).forward({"x": np.ones((5, 3, 4))})
        assert other.shape == again


class TestFlatten(OpContract):
    function = staticmethod(tg.flatten)
    reference = staticmethod(reference.flatten)
    problems = flatten_problems()
    claims = [
        (Problem((X,), {"start_dim": first, "end_dim": last}, (True,)), claim)
        for first, last, claim in ((1, -1, "map"), (-1, -1, "map"), (0, -1, "map"), (0, 0, "map"))
    ]
    bad_input = [
        Bad("start", (X, 3), {}, ShapeError, "start_dim: expected an axis from -3 to 2, got 3"),
        Bad("end", (X, 0, -4), {}, ShapeError, "end_dim: expected an axis from -3 to 2, got -4"),
        Bad("order", (X, 2, 1), {}, ShapeError, "no axis before start_dim 2"),
        Bad("no second axis", (X[0, 0], 1), {}, ShapeError, "x has 1 axes"),
        Bad("float", (X, 1.0), {}, ArgumentError, "an int"),
    ]


class TestSqueeze(OpContract):
    function = staticmethod(tg.squeeze)
    reference = staticmethod(reference.squeeze)
    problems = squeeze_problems()
    claims = claims_of(
        np.ones((1, 1, 2, 1)),
        "axis",
        (None, None),
        (1, "map"),
        ((1, -1), "map"),
        ((), "map"),
        (0, None),
    )
    bad_input = [
        Bad("axis", (X, 3), {}, ShapeError, "an axis from -3 to 2"),
        Bad("twice", (X[:1], (0, -3)), {}, ShapeError, "each axis once"),
        Bad("0-d", (1.0, 0), {}, ShapeError, "no axis: the input is 0-d"),
        Bad("float", (X[:1], 0.0), {}, DtypeError, "an int, a tuple of ints or None"),
    ]

    def test_a_view_of_any_layout(self):
        x = tg.Tensor(np.ones((1, 3, 1, 2))).transpose()
        y = tg.squeeze(x)
        assert y.shape == (2, 3) and np.shares_memory(y.value, x.value)


class TestUnflatten(OpContract):
    function = staticmethod(tg.unflatten)
    reference = staticmethod(reference.unflatten)
    problems = unflatten_problems()
    claims = [
        (Problem((X,), {"axis": axis, "sizes": (-1, 1)}, (True,)), claim)
        for axis, claim in ((1, "map"), (-1, "map"), (0, None), (-3, None))
    ]
    conventions = [Convention("an empty axis", ([],), np.zeros((0, 3)), ([],), EMPTY)]
    bad_input = [
        Bad("axis", (X, 3, (1,)), {}, ShapeError, "an axis from -3 to 2, got 3"),
        Bad("0-d", (1.0, 0, (1,)), {}, ShapeError, "no axis: the input is 0-d"),
        Bad(
            "product",
            (X, 1, (2, 2)),
            {},
            ShapeError,
            "sizes whose product is 3, the size of axis 1",
        ),
        Bad("no multiple", (X, 1, (2, -1)), {}, ShapeError, "product is 3, the size of axis 1"),
        Bad("two unknown", (X, 1, (-1, -1)), {}, ShapeError, "sizes: expected at most one -1"),
        Bad("no size", (X[:, :1], 1, ()), {}, ShapeError, "sizes: expected sizes whose product"),
        Bad("floats", (X, 1, (3.0,)), {}, ArgumentError, "an int or a tuple of ints"),
        Bad("float axis", (X, 1.0, (3,)), {}, DtypeError, "axis: expected an int, got 1.0"),
    ]


class TestUnsqueeze(OpContract):
    function = staticmethod(tg.unsqueeze)
    reference = staticmethod(reference.unsqueeze)
    problems = unsqueeze_problems()
    claims = claims_of(X, "axis", (1, "map"), (-1, "map"), (0, None), (-4, None))
    bad_input = [
        Bad("axis", (X, 4), {}, ShapeError, "an axis from -4 to 3, got 4"),
        Bad("beyond two", (X, (0, 5)), {}, ShapeError, "an axis from -5 to 4, got 5"),
        Bad("twice", (X, (0, -5)), {}, ShapeError, "each axis once"),
        Bad("None", (X, None), {}, DtypeError, "an int or a tuple of ints, got None"),
        Bad("float", (X, 0.0), {}, DtypeError, "an int, a tuple of ints or None"),
    ]

    def test_a_view_of_any_layout(self):
        x = tg.Tensor(X).transpose()
        y = x.unsqueeze((0, -1))
        assert y.shape == (1, 4, 3, 2, 1) and np.shares_memory(y.value, x.value)
