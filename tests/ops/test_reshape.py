"""reshape and flatten against loops over elements, and what they promise about samples."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.errors import ArgumentError, ShapeError
from tinygraph.ops.reshape import Flatten, Reshape

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


class TestReshape(OpContract):
    function = staticmethod(tg.reshape)
    reference = staticmethod(reference.reshape)
    problems = reshape_problems()
    bad_input = [
        Bad("size", (X, (5, 5)), {}, ShapeError,
            "one with 24 elements, as x of shape (2, 3, 4) has, got (5, 5), which needs 25"),
        Bad("multiple", (X, (5, -1)), {}, ShapeError, "got (5, -1), which needs a multiple of 5"),
        Bad("not empty", (X, (0, -1)), {}, ShapeError, "one with 24 elements"),
        Bad("anything", (X[:0], (0, -1)), {}, ShapeError, "no -1 beside a size of 0"),
        Bad("two -1", (X, (-1, -1)), {}, ShapeError, "at most one -1"),
        Bad("-2", (X, (-2, 12)), {}, ShapeError, "sizes of 0 or more"),
        Bad("float", (X, (2.0, 12)), {}, ArgumentError, "an int or a tuple of ints"),
        Bad("None", (X, None), {}, ArgumentError, "an int or a tuple of ints"),
    ]  # fmt: skip

    def test_a_view_where_memory_allows(self):
        x = tg.Tensor(X)
        assert np.shares_memory(tg.reshape(x, -1).value, x.value)
        assert not np.shares_memory(tg.reshape(x.T, -1).value, x.value)

    @pytest.mark.parametrize(
        ("shape", "claim"),
        [((-1, 12), "map"), ((-1, 2, 6), "map"), ((2, 12), None), ((-1, 6), None),
         ((-1,), None), ((1, -1, 12), None), ((2, -1), None)],
    )  # fmt: skip
    def test_what_it_claims_of_samples(self, shape, claim):
        assert Reshape(shape).batch((tg.Tensor(X).spec,), (True,)) == claim

    def test_another_batch_size_in_the_same_graph(self):
        x = tg.Tensor(X, name="x")
        (y,) = tg.Graph(tg.reshape(x, (-1, 12))).forward({"x": np.ones((5, 3, 4))})
        assert y.shape == (5, 12)

    def test_as_methods(self):
        x = tg.Tensor(np.arange(6))
        assert x.reshape(2, -1).shape == x.reshape((2, 3)).shape == x.reshape([2, 3]).shape
        assert x.reshape(np.int64(6)).dtype == np.int64
        assert tg.Tensor([1.0]).reshape(()).shape == ()


class TestFlatten(OpContract):
    function = staticmethod(tg.flatten)
    reference = staticmethod(reference.flatten)
    problems = flatten_problems()
    bad_input = [
        Bad("start", (X, 3), {}, ShapeError, "start_dim: expected an axis from -3 to 2, got 3"),
        Bad("end", (X, 0, -4), {}, ShapeError, "end_dim: expected an axis from -3 to 2, got -4"),
        Bad("order", (X, 2, 1), {}, ShapeError, "no axis before start_dim 2"),
        Bad("no second axis", (X[0, 0], 1), {}, ShapeError, "x has 1 axes"),
        Bad("float", (X, 1.0), {}, ArgumentError, "ints"),
    ]

    @pytest.mark.parametrize(
        ("span", "claim"), [((1, -1), "map"), ((-1, -1), "map"), ((0, -1), None), ((0, 0), "map")]
    )
    def test_what_it_claims_of_samples(self, span, claim):
        assert Flatten(*span).batch((tg.Tensor(X).spec,), (True,)) == claim

    def test_an_empty_batch_keeps_its_features(self):
        assert tg.flatten(X[:0], 1).shape == (0, 12)

    def test_as_a_method(self):
        assert tg.Tensor(X).flatten(1).shape == (2, 12)
