"""max and min against loops, and their conventions: ties, NaN, infinities, what is stored."""

import numpy as np
import pytest
from hypothesis import given

import tinygraph as tg
from tests import reference
from tests.conftest import DEVICES
from tests.op_contract import Bad, OpContract
from tests.ops.test_sum import BAD_AXES, LARGE_SETS, X
from tests.strategies import axis_problems, seeds
from tinygraph.errors import ShapeError

BAD_EXTREMES = [
    *BAD_AXES,
    Bad("no element", (X[:0],), {}, ShapeError, "at least one element along axis None"),
    Bad("empty axis", (X[:0], 0), {}, ShapeError, "at least one element along axis 0"),
    Bad("nothing at all", (X[:0, :0], 1), {}, ShapeError, "axis 1, got (0, 0)"),
]


class TestMax(OpContract):
    function = staticmethod(tg.max)
    reference = staticmethod(reference.max_over)
    problems = axis_problems()
    large_problems = LARGE_SETS
    bad_input = BAD_EXTREMES

    @pytest.mark.parametrize("device", DEVICES)
    @given(problem=axis_problems(), seed=seeds)
    def test_the_first_maximum_or_the_first_nan_gets_the_gradient(self, device, problem, seed):
        rng = np.random.default_rng(seed)
        shape = problem.args[0].shape
        x = rng.choice([0.0, 1.0, -np.inf, np.inf, np.nan], shape, p=[0.3, 0.3, 0.2, 0.1, 0.1])
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = tg.max(node, **problem.kwargs)
        np.testing.assert_array_equal(y.value, reference.max_over(x, **problem.kwargs))
        g = rng.standard_normal(y.shape)
        y.backward(g)
        # Row by row, the first element that no later one beats: numpy's argmax on a flat list.
        positions = np.arange(float(x.size)).reshape(shape)

        def first(numbers):
            flat = [x.flat[int(p)] for p in numbers]
            return numbers[int(np.argmax(flat))]

        winners = reference.over_axes(first, positions, **{"keepdims": False, **problem.kwargs})
        expected = np.zeros(x.size)
        expected[winners.astype(int).ravel()] = g.ravel()
        np.testing.assert_array_equal(node.grad, expected.reshape(shape))

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
    def test_integers(self, dtype, device):
        y = tg.max(tg.Tensor(np.array([[0, 1], [0, 0]], dtype), device=device), axis=1)
        assert y.dtype == dtype and y.value.tolist() == [1, 0]

    def test_the_largest_integers(self, device):
        unsigned = np.array([2**63, 1, 2**64 - 1], np.uint64)
        signed = np.array([-(2**63), 2**63 - 1, 0])
        assert tg.max(tg.Tensor(unsigned, device=device)).item() == 2**64 - 1
        assert tg.max(tg.Tensor(signed, device=device)).item() == 2**63 - 1

    @pytest.mark.parametrize("length", [20, 700, 5000, 40_000])
    @pytest.mark.parametrize("function", [tg.max, tg.min])
    def test_the_first_of_equals_in_long_sets(self, function, length, device):
        """Whichever threads meet them: one of few, a warp, a block, several blocks."""
        rng = np.random.default_rng(length)
        x = np.sign(rng.uniform(-1, 1, (3, length)))
        x[1, length // 3 :: 5] = np.nan
        x[2] = np.inf if function is tg.min else -np.inf  # no element beats the first
        node = tg.Tensor(x, requires_grad=True, device=device)
        y = function(node, axis=1)
        y.backward(np.array([2.0, 3.0, 4.0]))
        first = [int(np.argmax(x[0] == y.value[0])), length // 3, 0]
        np.testing.assert_array_equal(np.flatnonzero(node.grad), np.arange(3) * length + first)
        np.testing.assert_array_equal(y.value, getattr(np, function.__name__)(x, axis=1))


class TestMin(OpContract):
    function = staticmethod(tg.min)
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
        y, z = tg.min(low, **problem.kwargs), tg.max(high, **problem.kwargs)
        np.testing.assert_array_equal(y.value, reference.min_over(x, **problem.kwargs))
        g = rng.standard_normal(y.shape)
        y.backward(g)
        z.backward(g)
        np.testing.assert_array_equal(low.grad, high.grad)

    @pytest.mark.parametrize("dtype", ["int8", "uint64", "bool"])
    def test_integers(self, dtype, device):
        y = tg.min(tg.Tensor(np.array([[0, 1], [1, 1]], dtype), device=device), axis=1)
        assert y.dtype == dtype and y.value.tolist() == [0, 1]

    def test_its_name_and_the_method(self):
        y = tg.Tensor(X).min((0, 1), keepdims=True)
        assert y.shape == (1, 1) and tg.min(X).op.name == "min"
