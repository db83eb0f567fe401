"""logsumexp against loops, and where exponentials overflow, underflow or are absent."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.ops.test_sum import LARGE_SETS
from tests.strategies import axis_problems
from tinygraph.base.errors import DtypeError, ShapeError


class TestLogsumexp(OpContract):
    function = staticmethod(tg.logsumexp)
    reference = staticmethod(reference.logsumexp)
    problems = axis_problems()
    large_problems = LARGE_SETS
    bad_input = [
        Bad("float16", (np.ones(2, "f2"),), {}, DtypeError, "logsumexp: x: expected float32 or"),
        Bad("axis", ([1.0], 1), {}, ShapeError, "an axis from -1 to 0, got 1"),
        Bad("axis twice", ([[1.0]], (0, -2)), {}, ShapeError, "each axis once"),
        Bad("axis word", ([1.0], "rows"), {}, DtypeError, "an int, a tuple of ints or None"),
        Bad("axis 0-d", (np.float64(1), 0), {}, ShapeError, "no axis: the input is 0-d"),
    ]

    def test_of_integers_and_bools_it_is_float32(self, device):
        for dtype in ("int64", "bool"):
            y = tg.logsumexp(tg.Tensor(np.array([[0, 1], [1, 1]], dtype), device=device), axis=1)
            assert y.dtype == np.float32
            np.testing.assert_allclose(y.value, [np.log(1 + np.e), 1 + np.log(2)], rtol=1e-6)

    # Sets of one thread; of several slices that know nothing of one another's infinities.
    @pytest.mark.parametrize("repeats", [1, 20_000])
    def test_infinities_and_nan(self, repeats, device):
        low, high, nan = -np.inf, np.inf, np.nan
        x = [[low, low], [high, 0], [high, low], [high, high], [nan, high], [nan, low], [low, 3]]
        y = tg.logsumexp(tg.Tensor(np.repeat(x, repeats, axis=1), device=device), axis=1)
        expected = [low, high, high, high, nan, nan, 3 + np.log(repeats)]
        np.testing.assert_allclose(y.value, expected, rtol=1e-12)

    def test_slices_far_apart(self, device):
        """Where one slice underflows in the sight of another, and where all are far below 0."""
        x = np.repeat([-3000.0, -2000.0, -3000.0], 9000)
        y = tg.logsumexp(tg.Tensor(x, device=device))
        assert y.item() == pytest.approx(-2000 + np.log(9000), rel=1e-14)

    def test_the_gradient_where_all_is_minus_infinity_is_zero(self, device):
        x = tg.Tensor([[-np.inf, -np.inf], [-np.inf, 2.0]], requires_grad=True, device=device)
        tg.logsumexp(x, axis=1).backward([1.0, 1.0])
        np.testing.assert_array_equal(x.grad, [[0, 0], [0, 1]])

    def test_the_gradient_where_one_is_infinite(self, device):
        x = tg.Tensor([[np.inf, 2.0]], requires_grad=True, device=device)
        with np.errstate(invalid="ignore"):
            tg.logsumexp(x, axis=1).backward([1.0])
        np.testing.assert_array_equal(x.grad, [[np.nan, 0]])

    def test_of_nothing(self, device):
        x = tg.Tensor(np.ones((2, 0)), requires_grad=True, device=device)
        y = tg.logsumexp(x, axis=1)
        np.testing.assert_array_equal(y.value, [-np.inf, -np.inf])
        y.backward(np.ones(2))
        assert x.grad.shape == (2, 0)
        assert tg.logsumexp(x, axis=0).shape == (0,)

    def test_of_no_axis_is_the_identity(self, device):
        x = tg.Tensor(1.5, requires_grad=True, device=device)
        y = tg.logsumexp(x)
        assert y.shape == () and y.item() == 1.5
        y.backward()
        assert x.grad == 1
        np.testing.assert_allclose(
            tg.logsumexp(tg.Tensor([[1.0, 2.0]], device=device), axis=()).value, [[1, 2]]
        )

    def test_equal_settings_make_equal_ops(self):
        x = tg.Tensor(np.ones((2, 2)), requires_grad=True)
        assert tg.logsumexp(x, [0, 1]).op == tg.logsumexp(x, (0, 1)).op
