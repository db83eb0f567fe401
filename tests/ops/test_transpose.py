"""transpose, permute, movedim against loops over elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import numbers, seeds, shapes
from tinygraph.base.errors import DtypeError, ShapeError

X = np.ones((2, 3, 4))
RNG = np.random.default_rng(0)


@st.composite
def permutation_problems(draw, argument="axes"):
    """One array, and its axes in any order, some of them counted from the end; or None for axes."""
    shape = draw(shapes())
    order = draw(st.permutations(range(len(shape))))
    axes = tuple(a - len(shape) if draw(st.booleans()) else a for a in order)
    kwargs = {argument: draw(st.sampled_from([axes, None])) if argument == "axes" else axes}
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,) if shape else None)


@st.composite
def two_axes_problems(draw):
    """One array and two of its axes, which may be the same."""
    shape = draw(shapes(min_dims=1))
    axes = st.integers(-len(shape), len(shape) - 1)
    return Problem(
        (numbers(draw(seeds), shape),), {"source": draw(axes), "destination": draw(axes)}
    )


@st.composite
def moving_problems(draw):
    """One array, some of its axes, and as many places."""
    shape = draw(shapes(min_dims=1))
    count = draw(st.integers(0, len(shape)))
    source, destination = (draw(st.permutations(range(len(shape))))[:count] for _ in range(2))
    kwargs = {"source": tuple(source), "destination": tuple(a - len(shape) for a in destination)}
    return Problem((numbers(draw(seeds), shape),), kwargs, (True,))


class TestTranspose(OpContract):
    function = staticmethod(tg.transpose)
    reference = staticmethod(reference.transpose)
    problems = permutation_problems()
    large_problems = (
        Problem((RNG.standard_normal((37, 70)),), {}),  # tiles, the last ones in part
        Problem((RNG.standard_normal((3, 9, 2, 33)),), {"axes": (3, 0, 2, 1)}),
        Problem((RNG.standard_normal((2, 8, 3, 8)),), {}),  # two axes of tiles
        Problem((RNG.standard_normal((5, 300, 3)),), {"axes": (0, 2, 1)}),  # too thin for a tile
        Problem((RNG.standard_normal((9, 8, 70)),), {"axes": (1, 0, 2)}),  # rows move whole
        Problem((RNG.standard_normal((2,) * 9),), {}),  # more axes than a kernel takes
        Problem(
            (RNG.standard_normal((2, 3, 2, 2, 2, 2, 2, 2, 3)),),
            {"axes": (7, 5, 3, 1, 8, 6, 4, 2, 0)},
        ),
    )
    bad_input = [
        Bad("too few", (X, (1, 0)), {}, ShapeError, "each of the 3 axes of x exactly once"),
        Bad("twice", (X, (0, 1, -2)), {}, ShapeError, "got (0, 1, -2) for x of rank 3"),
        Bad("out of range", (X, (0, 1, 3)), {}, ShapeError, "a permutation of (0, 1, 2)"),
        Bad("below range", (X, (0, 1, -4)), {}, ShapeError, "each of the 3 axes"),
        Bad("one int", (X, 1), {}, ShapeError, "each of the 3 axes"),
        Bad("floats", (X, (0, 1, 2.0)), {}, DtypeError, "axes: expected a tuple of ints"),
        Bad(
            "no such axis", (X, 0, 3), {}, ShapeError, "axis: expected an axis from -3 to 2, got 3"
        ),
        Bad("0-d", (1.0, 0, 1), {}, ShapeError, "no axis: the input is 0-d"),
        Bad("a float", (X, 0, 1.0), {}, DtypeError, "axis: expected an int, got 1.0"),
        Bad("a bool", (X, False, True), {}, DtypeError, "axis: expected an int, got False"),
    ]

    @given(problem=two_axes_problems())
    def test_two_axes_are_swapped(self, problem):
        """In PyTorch's sense, though a permutation of a matrix looks the same."""
        (x,), (a, b) = problem.args, problem.kwargs.values()
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
        y = tg.transpose(x, a, b)
        np.testing.assert_array_equal(y.value, reference.transpose(x, order))
        assert tg.transpose(x, dim0=a, dim1=b).op == y.op == tg.Tensor(x).transpose(a, b).op

    def test_two_axes_of_a_matrix_are_no_permutation(self):
        assert tg.transpose(X[0], 0, 1).shape == (4, 3) and tg.transpose(X[0], (0, 1)).shape == (
            3,
            4,
        )
        assert tg.transpose(X, 2, 0, 1).shape == tg.transpose(X, (2, 0, 1)).shape == (4, 2, 3)

    @given(problem=permutation_problems())
    def test_output_and_gradient_are_views(self, problem):
        (x,) = problem.args
        node = tg.Tensor(x, requires_grad=True)
        y = tg.transpose(node, **problem.kwargs)
        gy = np.ones(y.shape)
        (gx,) = y.op.backward(None, gy, y.saved, (True,))
        assert np.shares_memory(y.value, node.value) and np.shares_memory(gx, gy)

    @pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "i8", "u8", "f2"])
    def test_any_dtype(self, dtype, device):
        x = np.arange(12 * 40).reshape(12, 40).astype(dtype)
        for array in (x, x[:, :3]):  # through tiles, and without
            y = tg.transpose(tg.Tensor(array, device=device))
            assert y.dtype == x.dtype
            np.testing.assert_array_equal(y.value, array.T)

    def test_bits_are_moved_as_they_are(self, device):
        """A NaN keeps its payload, and -0 its sign."""
        x = np.array([[0x7FC00123, 0x80000000, 0xFF800001]] * 2, "u4").view("f4")
        y = tg.transpose(tg.Tensor(x, device=device))
        np.testing.assert_array_equal(np.ascontiguousarray(y.value).view("u4"), x.view("u4").T)

    def test_what_moves_no_element_is_a_view_on_every_device(self, device):
        x = tg.Tensor(np.ones((3, 1, 4)), device=device)
        assert np.shares_memory(tg.transpose(x, (1, 0, 2)).value, x.value)

    @pytest.mark.parametrize("shape", [(1025, 8, 8), (33 * 32, 32 * 32)])
    def test_more_tiles_than_blocks(self, shape):
        x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        y = tg.transpose(tg.Tensor(x, device="emulator"), (*range(x.ndim - 2), -1, -2))
        np.testing.assert_array_equal(y.value, np.swapaxes(x, -1, -2))


class TestPermute(OpContract):
    function = staticmethod(tg.permute)
    reference = staticmethod(lambda x, dims: reference.transpose(x, dims))
    problems = permutation_problems("dims")
    conventions = [Convention("of no axis", (1.5,), 1.5, (1.0,), {"dims": ()})]
    bad_input = [
        Bad("too few", (X, (1, 0)), {}, ShapeError, "each of the 3 axes of x exactly once"),
        Bad("twice", (X, 0, 1, -2), {}, ShapeError, "got (0, 1, -2) for x of rank 3"),
        Bad("two axes", (X, 0, 1), {}, ShapeError, "each of the 3 axes"),
        Bad("None", (X, None), {}, DtypeError, "permute: dims: expected a tuple of ints, got None"),
    ]

    def test_ints_and_a_tuple(self):
        assert tg.permute(X, 2, 0, 1).op == tg.permute(X, (2, 0, 1)).op
        assert tg.permute(X[0], 0, 1).shape == (3, 4)


class TestMovedim(OpContract):
    function = staticmethod(tg.movedim)
    reference = staticmethod(reference.movedim)
    problems = st.one_of(moving_problems(), two_axes_problems())
    conventions = [
        Convention("none", (X[0, 0],), X[0, 0], (X[0, 0],), {"source": (), "destination": ()})
    ]
    bad_input = [
        Bad("axis", (X, 3, 0), {}, ShapeError, "axis: expected an axis from -3 to 2, got 3"),
        Bad("place", (X, 0, -4), {}, ShapeError, "axis: expected an axis from -3 to 2, got -4"),
        Bad("axis twice", (X, (0, 0), (1, 2)), {}, ShapeError, "each axis once"),
        Bad("place twice", (X, (0, 1), (2, -1)), {}, ShapeError, "each axis once"),
        Bad("fewer places", (X, (0, 1), 2), {}, ShapeError, "destination: expected as many places"),
        Bad("a float", (X, 0.5, 0), {}, DtypeError, "an int, a tuple of ints"),
    ]
