"""Extremes and their places against loops: ties, NaN, infinities, what is stored."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, Convention, OpContract, Problem, claims_of
from tests.ops.test_sum import BAD_AXES, LARGE_SETS, X
from tests.strategies import axis_problems, seeds, shapes
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

BAD_EXTREMES = [
    *BAD_AXES,
    Bad("no element", (X[:0],), {}, ShapeError, "at least one element along axis None"),
    Bad("empty axis", (X[:0], 0), {}, ShapeError, "at least one element along axis 0"),
    Bad("nothing at all", (X[:0, :0], 1), {}, ShapeError, "axis 1, got (0, 0)"),
]


class TestAmax(OpContract):
    function = staticmethod(tg.amax)
    reference = staticmethod(reference.max_over)
    problems = axis_problems()
    large_problems = LARGE_SETS
    bad_input = BAD_EXTREMES

    @pytest.mark.parametrize("device", DEVICES)
    @given(problem=axis_problems(), seed=seeds)
    def test_equal_maxima_and_equally_nans_share_the_gradient(self, device, problem, seed):
        rng = np.random.default_rng(seed)
        shape = problem.args[0].shape
        x = rng.choice([0.0, 1.0, -np.inf, np.inf, np.nan], shape, p=[0.3, 0.3, 0.2, 0.1, 0.1])
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = tg.amax(node, **problem.kwargs)
        np.testing.assert_array_equal(y.value, reference.max_over(x, **problem.kwargs))
        g = rng.standard_normal(y.shape)
        y.backward(g)
        positions = np.arange(float(x.size)).reshape(shape)
        expected, left = np.zeros(x.size), iter(g.ravel())

        def share(numbers):
            where = [int(p) for p in numbers]
            lacks = np.isnan(x.flat[where])
            equal = lacks if lacks.any() else x.flat[where] == x.flat[where].max()
            expected[where] = np.where(equal, next(left) / sum(equal.tolist()), 0)
            return 0.0

        reference.over_axes(share, positions, **{"keepdims": False, **problem.kwargs})
        np.testing.assert_array_equal(node.grad, expected.reshape(shape))

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
    def test_integers(self, dtype, device):
        y = tg.amax(tg.Tensor(np.array([[0, 1], [0, 0]], dtype), device=device), axis=1)
        assert y.dtype == dtype and y.value.tolist() == [1, 0]

    def test_the_largest_integers(self, device):
        unsigned = np.array([2**63, 1, 2**64 - 1], np.uint64)
        signed = np.array([-(2**63), 2**63 - 1, 0])
        assert tg.amax(tg.Tensor(unsigned, device=device)).item() == 2**64 - 1
        assert tg.amax(tg.Tensor(signed, device=device)).item() == 2**63 - 1

    @pytest.mark.parametrize("length", [20, 700, 5000, 40_000])
    @pytest.mark.parametrize("function", [tg.amax, tg.amin])
    def test_equals_in_long_sets(self, function, length, device):
        """Whichever threads meet them: one of few, a warp, a block, several blocks."""
        rng = np.random.default_rng(length)
        x = np.sign(rng.uniform(-1, 1, (3, length)))
        x[1, length // 3 :: 5] = np.nan
        x[2] = np.inf if function is tg.amin else -np.inf  # all are equal
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = function(node, axis=1)
        y.backward(np.array([2.0, 3.0, 4.0]))
        equal = np.stack([x[0] == y.value[0], np.isnan(x[1]), np.ones(length, bool)])
        counts = np.array([[sum(row.tolist())] for row in equal])
        expected = np.where(equal, np.array([[2.0], [3.0], [4.0]]) / counts, 0)
        np.testing.assert_array_equal(node.grad, expected)
        where = (tg.argmax if function is tg.amax else tg.argmin)(node, axis=1)
        np.testing.assert_array_equal(where.value, [int(np.argmax(row)) for row in equal])
        np.testing.assert_array_equal(y.value, getattr(np, function.__name__)(x, axis=1))


class TestAmin(OpContract):
    function = staticmethod(tg.amin)
    reference = staticmethod(reference.min_over)
    problems = axis_problems()
    large_problems = LARGE_SETS
    bad_input = BAD_EXTREMES

    @pytest.mark.parametrize("device", DEVICES)
    @given(problem=axis_problems(), seed=seeds)
    def test_it_is_the_negative_maximum_of_the_negatives(self, device, problem, seed):
        """With ties, NaN and infinities; the gradient goes to the same elements."""
        rng = np.random.default_rng(seed)
        values = [0.0, 1.0, -np.inf, np.inf, np.nan]
        x = rng.choice(values, problem.args[0].shape, p=[0.3, 0.3, 0.1, 0.2, 0.1])
        low = tg.Tensor(x, requires_grad=True, device=device)
        high = tg.Tensor(-x, requires_grad=True, device=device)
        y, z = tg.amin(low, **problem.kwargs), tg.amax(high, **problem.kwargs)
        np.testing.assert_array_equal(y.value, reference.min_over(x, **problem.kwargs))
        g = rng.standard_normal(y.shape)
        y.backward(g)
        z.backward(g)
        np.testing.assert_array_equal(low.grad, high.grad)

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
    def test_integers(self, dtype, device):
        y = tg.amin(tg.Tensor(np.array([[0, 1], [1, 1]], dtype), device=device), axis=1)
        assert y.dtype == dtype and y.value.tolist() == [0, 1]


@st.composite
def one_axis_problems(draw, none=True):
    """An array without equal elements, and one axis or none."""
    shape = draw(shapes(min_dims=1))
    size = math.prod(shape)
    x = np.random.default_rng(draw(seeds)).permutation(size) - 0.5 * size
    axes = st.integers(-len(shape), len(shape) - 1)
    kwargs = {"axis": draw(st.one_of(st.none(), axes) if none else axes)}
    return Problem((x.reshape(shape),), {**kwargs, "keepdims": draw(st.booleans())}, (True,))


LARGE_LINES = tuple(
    problem for problem in LARGE_SETS if not isinstance(problem.kwargs["axis"], tuple)
)
ONE_AXIS = [bad for bad in BAD_EXTREMES if bad.name not in ("axis twice", "axis 0.5", "axes")]
BAD_PLACES = [
    *ONE_AXIS,
    Bad("axes", (X, (0, 1)), {}, DtypeError, "axis: expected an int, got (0, 1)"),
    Bad("a bool", (X, True), {}, DtypeError, "axis: expected an int, got True"),
]


class TestArgmax(OpContract):
    function = staticmethod(tg.argmax)
    reference = staticmethod(reference.argmax)
    differentiable = False
    problems = one_axis_problems()
    large_problems = LARGE_LINES
    claims = claims_of(X, "axis", (1, "map"), (-1, "map"), (0, None), (None, None))
    conventions = [
        Convention("the first of equals", ([1.0, 2.0, 2.0],), 1),
        Convention("the first NaN", ([np.inf, np.nan, np.nan],), 1),
        Convention("all alike", ([[-np.inf, -np.inf]],), [0], kwargs={"axis": 1}),
    ]
    bad_input = BAD_PLACES

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
    def test_integers(self, dtype, device):
        x = tg.Tensor(np.array([[0, 1, 1], [0, 0, 0]], dtype), device=device)
        y = tg.argmax(x, axis=1, keepdims=True)
        assert y.dtype == np.int64 and y.value.tolist() == [[1], [0]]
        assert not y.requires_grad and tg.argmin(x).item() == 0


class TestArgmin(OpContract):
    function = staticmethod(tg.argmin)
    reference = staticmethod(reference.argmin)
    differentiable = False
    problems = one_axis_problems()
    large_problems = LARGE_LINES
    conventions = [
        Convention("the first of equals", ([2.0, 1.0, 1.0],), 1),
        Convention("the first NaN", ([-np.inf, np.nan, np.nan],), 1),
    ]
    bad_input = BAD_PLACES


BAD_LINES = [
    Bad("several axes", (X, (0, 1)), {}, ArgumentError, "takes several axes"),
    Bad("a list", (X, [0]), {}, ArgumentError, "axis: expected one axis, or a tensor, got [0]"),
    Bad("a bool", (X, True), {}, DtypeError, "axis: expected an int, got True"),
    Bad("a float", (X, 1.0), {}, DtypeError, "axis: expected an int, got 1.0"),
    Bad("axis 2", (X, 2), {}, ShapeError, "axis: expected an axis from -2 to 1, got 2"),
    Bad("no element", (X[:0], 0), {}, ShapeError, "at least one element along axis 0"),
]


class Line:
    """A function that gives values with their places along an axis, and one tensor without."""

    def apply(self, problem, nodes):
        y = self.function(*nodes, **problem.kwargs)
        return y if isinstance(y, tg.Tensor) else y.values

    @pytest.mark.parametrize("device", DEVICES)
    @given(problem=one_axis_problems(none=False))
    def test_the_places_are_those_of_the_values(self, problem, device):
        x, axis = problem.args[0], problem.kwargs["axis"]
        values, indices = self.function(tg.Tensor(x, device=device), **problem.kwargs)
        assert indices.dtype == np.int64 and indices.shape == values.shape
        whole = (
            a.value if problem.kwargs["keepdims"] else np.expand_dims(a.value, axis)
            for a in (values, indices)
        )
        values, indices = whole
        np.testing.assert_array_equal(np.take_along_axis(x, indices, axis), values)


class TestMax(Line, OpContract):
    function = staticmethod(tg.max)
    reference = staticmethod(reference.max_over)
    problems = one_axis_problems()
    large_problems = LARGE_LINES
    conventions = [
        Convention("equal", ([1.0, 3.0, 3.0],), 3.0, ([0.0, 1.0, 0.0],), {"axis": 0}),
        Convention("NaN", ([np.inf, np.nan],), np.nan, ([0.0, 1.0],), {"axis": 0}),
        Convention(
            "all", ([[1.0, 2.0], [2.0, 0.0]],), 2.0, ([[0, 0.5], [0.5, 0]],), {"axis": None}
        ),
    ]
    bad_input = [*BAD_LINES, Bad("shapes", (X, X.T), {}, ShapeError, "shapes that broadcast")]

    def test_names_of_what_it_gives(self):
        x = tg.Tensor([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
        found = x.max(1)
        assert found.values.value.tolist() == [5, 7] and found.indices.value.tolist() == [1, 0]
        assert found[0] is found.values and not found.indices.requires_grad
        assert x.max().item() == 7 and x.max(0, keepdims=True).values.shape == (1, 2)

    def test_of_two_operands(self, device):
        x, y = tg.Tensor([[1.0], [4.0]], requires_grad=True, device=device), np.float32([2, 3])
        assert tg.max(x, y).value.tolist() == tg.max(x, other=y).value.tolist() == [[2, 3], [4, 4]]
        assert x.min(tg.Tensor(y, device=device)).value.tolist() == [[1, 1], [2, 3]]

    def test_integers_and_bools(self, device):
        for dtype in ("int32", "bool", "uint64"):
            x = tg.Tensor(np.array([[0, 1], [1, 0]], dtype), device=device)
            values, indices = tg.max(x, 0)
            assert values.dtype == dtype and values.value.tolist() == [1, 1]
            assert indices.value.tolist() == [1, 0]

    def test_places_are_nodes_of_the_graph(self, device):
        """Another batch has other places, and another size."""
        x = tg.Tensor(np.float32([[1, 2], [4, 3]]), device=device, name="x")
        values, indices = tg.max(x, 1)
        graph = tg.Graph(values, indices)
        graph.forward({"x": np.float32([[0, 9], [8, 7], [5, 6]])})
        assert values.value.tolist() == [9, 8, 6] and indices.value.tolist() == [1, 0, 1]


class TestMin(Line, OpContract):
    function = staticmethod(tg.min)
    reference = staticmethod(reference.min_over)
    problems = one_axis_problems()
    conventions = [
        Convention("equal", ([3.0, 1.0, 1.0],), 1.0, ([0.0, 1.0, 0.0],), {"axis": 0}),
        Convention("NaN", ([-np.inf, np.nan],), np.nan, ([0.0, 1.0],), {"axis": 0}),
    ]
    bad_input = BAD_LINES
