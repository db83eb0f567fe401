"""split, tensor_split, chunk and unbind against slices; one of several parts is looked at."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

X = np.ones((2, 3))
BAD_CUTS = [
    Bad("axis", (X, 1, 2), {}, ShapeError, "axis: expected an axis from -2 to 1"),
    Bad("float axis", (X, 1, 1.0), {}, DtypeError, "axis: expected an int, got 1.0"),
    Bad("0-d", (1.0, 1), {}, ShapeError, "no axis: the input is 0-d"),
]


class OnePart:
    """A function that gives several nodes: the contract looks at one of them."""

    def apply(self, problem, nodes):
        kwargs = dict(problem.kwargs)
        part = kwargs.pop("part")
        return self.function(*nodes, **kwargs)[part]


def cut_problem(draw, length, parts, **kwargs):
    """An array with an axis of that length, and which part is looked at.

    Along its batch it has no batch: the parts of a batch have fixed sizes.
    """
    shape = list(draw(shapes(min_dims=1, max_dims=3)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = length
    kwargs = {"part": draw(st.integers(0, parts - 1)), **kwargs, "axis": axis}
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,) if axis % len(shape) else None)


@st.composite
def split_problems(draw):
    """Parts of one size, of any sizes, which may be 0, or a number of equal ones."""
    how = draw(st.sampled_from(["size", "sizes", "sections"]))
    if how == "sizes":
        sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
        return cut_problem(draw, sum(sizes), len(sizes), size_or_sizes=sizes)
    number, length = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    if how == "sections":
        return cut_problem(draw, number * draw(st.integers(0, 3)), number, sections=number)
    return cut_problem(draw, length, max(-(-length // number), 1), size_or_sizes=number)


@st.composite
def tensor_split_problems(draw):
    length, sections = draw(st.integers(0, 6)), draw(st.integers(1, 4))
    places = draw(st.lists(st.integers(-8, 8), max_size=3))
    if draw(st.booleans()):
        return cut_problem(draw, length, sections, indices_or_sections=sections)
    return cut_problem(draw, length, len(places) + 1, indices_or_sections=places)


@st.composite
def chunk_problems(draw):
    length, chunks = draw(st.integers(0, 7)), draw(st.integers(1, 4))
    size = -(-length // chunks)
    return cut_problem(draw, length, -(-length // size) if size else chunks, chunks=chunks)


@st.composite
def unbind_problems(draw):
    length = draw(st.integers(1, 4))
    return cut_problem(draw, length, length)


class TestSplit(OnePart, OpContract):
    function = staticmethod(tg.split)
    reference = staticmethod(reference.part_of_split)
    problems = split_problems()
    bad_input = [
        *BAD_CUTS,
        Bad("sum", (X, [1, 1, 2], 1), {}, ShapeError, "with sum 3, the size of the axis, got "),
        Bad("negative", (X, (4, -1), 1), {}, ShapeError, "sizes of 0 or more with sum 3"),
        Bad("too negative", (X, (5, -2), 1), {}, ShapeError, "sizes of 0 or more"),
        Bad("no part", (X[:0], []), {}, ShapeError, "sizes of 0 or more with sum 0"),
        Bad("size 0", (X, 0), {}, ShapeError, "a size of 1 or more, got 0"),
        Bad("size -1", (X, -1), {}, ShapeError, "a size of 1 or more, got -1"),
        Bad("sections", (X,), {"sections": 2, "axis": 1}, ShapeError, "that divides 3"),
        Bad("no section", (X,), {"sections": 0}, ShapeError, "that divides 2, the size"),
        Bad("neither", (X,), {}, ArgumentError, "expected sizes, or sections="),
        Bad("both", (X, 1), {"sections": 2}, ArgumentError, "got both"),
        Bad("float", (X, 2.0), {}, ArgumentError, "an int or a tuple of ints"),
    ]

    @given(problem=split_problems(), seed=seeds)
    def test_all_parts_together_are_the_whole(self, problem, seed):
        """Joined again they give x, and the gradient of x is theirs, joined."""
        (array,), kwargs = problem.args, dict(problem.kwargs)
        del kwargs["part"]
        x, axis = tg.Tensor(array, requires_grad=True), kwargs["axis"]
        parts = tg.split(x, **kwargs)
        assert isinstance(parts, tuple)
        np.testing.assert_array_equal(np.concatenate([p.value for p in parts], axis), array)
        g = np.random.default_rng(seed).standard_normal(array.shape)
        tg.concatenate(parts, axis).backward(g)
        np.testing.assert_array_equal(x.grad, g)

    def test_parts_are_views_and_a_part_left_alone_gets_no_gradient(self):
        x = tg.Tensor(np.arange(5.0), requires_grad=True)
        first, second = x.split([2, 3])
        assert np.shares_memory(first.value, x.value)
        second.backward(np.ones(3))
        assert x.grad.tolist() == [0, 0, 1, 1, 1]

    def test_an_int_is_a_size_as_in_pytorch(self):
        x = np.arange(6.0)
        assert [p.value.tolist() for p in tg.split(x, 4)] == [[0, 1, 2, 3], [4, 5]]
        assert [p.value.tolist() for p in tg.split(x, sections=2)] == [[0, 1, 2], [3, 4, 5]]
        assert len(tg.split(x, 2)) == 3 and len(tg.split(x, 100)) == 1


class TestTensorSplit(OnePart, OpContract):
    function = staticmethod(tg.tensor_split)
    reference = staticmethod(reference.part_of_tensor_split)
    problems = tensor_split_problems()
    conventions = [
        Convention("beyond", ([1.0],), [], ([0.0],), {"indices_or_sections": [5], "part": 1}),
        Convention("backwards", ([1.0],), [], ([0.0],), {"indices_or_sections": [1, 0], "part": 1}),
    ]
    bad_input = [
        *BAD_CUTS,
        Bad("no section", (X, 0), {}, ShapeError, "at least 1 section, got 0"),
        Bad("float", (X, 2.0), {}, ArgumentError, "an int or a tuple of ints"),
        Bad("floats", (X, [1.0]), {}, ArgumentError, "an int or a tuple of ints"),
    ]

    @pytest.mark.parametrize("how", [1, 3, 7, [], [2], [-1, 1, 9], (0, 3)])
    def test_the_parts_are_those_of_numpy(self, how):
        x = np.arange(5.0)
        parts = [p.value.tolist() for p in tg.tensor_split(x, how)]
        assert parts == [p.tolist() for p in np.array_split(x, how)]


class TestChunk(OnePart, OpContract):
    function = staticmethod(tg.chunk)
    reference = staticmethod(reference.part_of_chunk)
    problems = chunk_problems()
    conventions = [Convention("of nothing", ([],), [], ([],), {"chunks": 3, "part": 2})]
    bad_input = [
        *BAD_CUTS,
        Bad("no chunk", (X, 0), {}, ShapeError, "chunks: expected at least 1, got 0"),
        Bad("float", (X, 2.0), {}, ArgumentError, "chunks: expected an int"),
    ]

    @pytest.mark.parametrize(
        ("length", "chunks", "sizes"), [(7, 3, [3, 3, 1]), (4, 3, [2, 2]), (2, 5, [1, 1])]
    )
    def test_there_may_be_fewer(self, length, chunks, sizes):
        assert [p.size for p in tg.chunk(np.zeros(length), chunks)] == sizes


class TestUnbind(OnePart, OpContract):
    function = staticmethod(tg.unbind)
    reference = staticmethod(reference.part_of_unbind)
    problems = unbind_problems()
    conventions = [Convention("numbers", ([1.0, 2.0],), 2.0, ([0.0, 1.0],), {"part": 1})]
    bad_input = [
        Bad("axis", (X, 2), {}, ShapeError, "axis: expected an axis from -2 to 1"),
        Bad("float axis", (X, 1.0), {}, DtypeError, "axis: expected an int, got 1.0"),
        Bad("0-d", (1.0,), {}, ShapeError, "no axis: the input is 0-d"),
    ]

    def test_of_an_empty_axis_nothing(self):
        assert tg.unbind(X[:0]) == () and [p.shape for p in tg.unbind(X, 1)] == [(2,)] * 3
