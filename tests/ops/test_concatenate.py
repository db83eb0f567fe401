"""concatenate, stack, vstack and hstack against loops over elements."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.ops.shaping.concatenate import Concatenate, Stack

X = np.ones((2, 3))


@st.composite
def concatenate_problems(draw):
    """One to four arrays that differ in size along one axis, of which some may be empty."""
    shape = draw(shapes(min_dims=1, max_dims=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    arrays = []
    for size in draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)):
        own = list(shape)
        own[axis] = size
        arrays.append(numbers(draw(seeds), own))
    carries = None if axis % len(shape) == 0 else (True,) * len(arrays)
    return Problem(tuple(arrays), {"axis": axis}, carries)


@st.composite
def stack_problems(draw):
    """One to three arrays of one shape, and any place for the new axis."""
    shape = draw(shapes(max_dims=3, min_side=0))
    arrays = [numbers(draw(seeds), shape) for _ in range(draw(st.integers(1, 3)))]
    axis = draw(st.integers(-len(shape) - 1, len(shape)))
    first = axis % (len(shape) + 1) == 0
    samples = shape and shape[0]
    carries = (True,) * len(arrays) if samples and not first else None
    return Problem(tuple(arrays), {"axis": axis}, carries)


@st.composite
def rows_problems(draw):
    """One to three arrays that differ in their number of rows."""
    shape = draw(shapes(max_dims=2))
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    if len(shape) < 2:
        return Problem(tuple(numbers(draw(seeds), shape) for _ in counts))
    return Problem(tuple(numbers(draw(seeds), (n, *shape[1:])) for n in counts))


@st.composite
def columns_problems(draw):
    """One to three arrays that differ in size along axis 1, or along their only one."""
    shape = draw(shapes(max_dims=3))
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    before, behind = shape[: len(shape) > 1], shape[2:]
    own = [(*before, n, *behind) if shape else () for n in counts]
    carries = (True,) * len(own) if before else None
    return Problem(tuple(numbers(draw(seeds), one) for one in own), {}, carries)


BAD_STACKS = [
    Bad("nothing", ([],), {}, ArgumentError, "at least one tensor, got none"),
    Bad("an array", (X,), {}, ArgumentError, "a list or tuple of tensors, got"),
    Bad("a number", (1.0,), {}, ArgumentError, "a list or tuple of tensors"),
]
BAD_LISTS = [
    *BAD_STACKS,
    Bad("float axis", ([X, X], 1.0), {}, ArgumentError, "axis: expected an int"),
]


class TestConcatenate(OpContract):
    function = staticmethod(tg.concatenate)
    reference = staticmethod(reference.concatenate)
    problems = concatenate_problems()
    claims = [
        (Problem((X, X), {"axis": axis}, carries), claim)
        for axis, carries, claim in (
            (1, (True, True), "map"),
            (-1, (True, True), "map"),
            (1, (True, False), None),
            (0, (True, True), None),
            (-2, (True, True), None),
        )
    ]
    bad_input = [
        *BAD_LISTS,
        Bad(
            "size",
            ([X, X, X[:1]], 1),
            {},
            ShapeError,
            "tensors[2]: expected the shape of tensors[0], (2, 3), but on axis 1, got (1, 3)",
        ),
        Bad(
            "rank",
            ([X, X[0]],),
            {},
            ShapeError,
            "tensors[0], (2, 3), but on axis 0, got (3,)",
        ),
        Bad("0-d", ([1.0, 2.0],), {}, ShapeError, "no axis: the input is 0-d"),
        Bad("axis", ([X, X], 2), {}, ShapeError, "an axis from -2 to 1"),
    ]

    def apply(self, problem, nodes):
        return self.function(nodes, **problem.kwargs)

    def test_dtypes_are_promoted(self):
        narrow = tg.Tensor(X.astype("f4"), requires_grad=True)
        y = tg.concatenate([narrow, X])
        assert y.dtype == np.float64
        y.sum().backward()
        assert narrow.grad.dtype == np.float32
        assert tg.concatenate([np.ones(2, int), np.ones(2, bool)]).dtype == np.int64

    def test_the_op_itself_takes_one_dtype(self):
        with pytest.raises(DtypeError, match=r"tensors\[1\]: expected float64"):
            Concatenate(0)(X, X.astype("f4"))

    def test_any_iterable(self):
        assert tg.concatenate(tg.Tensor(X) for _ in range(3)).shape == (6, 3)

    def test_gradients_are_views(self):
        nodes = [tg.Tensor(X, requires_grad=True), tg.Tensor(X)]
        y = tg.concatenate(nodes, 1)
        gy = np.ones(y.shape)
        gx, other = y.op.backward(None, gy, y.saved, y.needs)
        assert np.shares_memory(gx, gy) and other is None


class TestStack(OpContract):
    function = staticmethod(tg.stack)
    reference = staticmethod(reference.stack)
    problems = stack_problems()
    claims = [
        (Problem((X, X), {"axis": axis}, carries), claim)
        for axis, carries, claim in (
            (1, (True, True), "map"),
            (-1, (True, True), "map"),
            (2, (True, False), None),
            (0, (True, True), None),
            (-3, (True, True), None),
        )
    ]
    bad_input = [
        *BAD_LISTS,
        Bad(
            "shape",
            ([X, X, X[:1]],),
            {},
            ShapeError,
            "tensors[2]: expected the shape of tensors[0], (2, 3), got (1, 3)",
        ),
        Bad("axis", ([X, X], 3), {}, ShapeError, "an axis from -3 to 2"),
    ]

    def apply(self, problem, nodes):
        return self.function(nodes, **problem.kwargs)

    def test_dtypes_are_promoted(self):
        assert tg.stack([X, X.astype("f4")]).dtype == np.float64
        with pytest.raises(DtypeError, match=r"tensors\[1\]: expected float64"):
            Stack(0)(X, X.astype("f4"))

    def test_gradients_are_views(self):
        nodes = [tg.Tensor(1.0), tg.Tensor(2.0, requires_grad=True)]
        y = tg.stack(nodes)
        gy = np.ones(2, np.float32)
        other, gx = y.op.backward(None, gy, y.saved, y.needs)
        assert np.shares_memory(gx, gy) and gx.shape == () and other is None


class TestVstack(OpContract):
    function = staticmethod(tg.vstack)
    reference = staticmethod(reference.vstack)
    problems = rows_problems()
    conventions = [Convention("0-d", (1.0, 2.0), [[1.0], [2.0]], (1.0, 1.0))]
    bad_input = [
        *BAD_STACKS,
        Bad("columns", ([X, X[:, 1:]],), {}, ShapeError, "(2, 3), but on axis 0, got (2, 2)"),
        Bad("a shorter row", ([X, X[0, 1:]],), {}, ShapeError, "but on axis 0, got (1, 2)"),
    ]

    def apply(self, problem, nodes):
        return self.function(nodes)


class TestHstack(OpContract):
    function = staticmethod(tg.hstack)
    reference = staticmethod(reference.hstack)
    problems = columns_problems()
    conventions = [Convention("0-d", (1.0, 2.0), [1.0, 2.0], (1.0, 1.0))]
    bad_input = [
        *BAD_STACKS,
        Bad("rows", ([X, X[:1]],), {}, ShapeError, "(2, 3), but on axis 1, got (1, 3)"),
        Bad("rank", ([X, X[0]],), {}, ShapeError, "but on axis 1, got (3,)"),
    ]

    def apply(self, problem, nodes):
        return self.function(nodes)
