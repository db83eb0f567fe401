"""logsumexp against loops, and where exponentials overflow, underflow or are absent."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import axis_problems
from tinygraph.errors import DtypeError, ShapeError


class TestLogsumexp(OpContract):
    function = staticmethod(tg.logsumexp)
    reference = staticmethod(reference.logsumexp)
    problems = axis_problems()
    bad_input = [
        Bad("integers", ([1, 2],), {}, DtypeError, "logsumexp: x: expected float32 or float64"),
        Bad("axis", ([1.0], 1), {}, ShapeError, "an axis from -1 to 0, got 1"),
        Bad("axis twice", ([[1.0]], (0, -2)), {}, ShapeError, "each axis once"),
        Bad("axis word", ([1.0], "rows"), {}, DtypeError, "an int, a tuple of ints or None"),
        Bad("axis 0-d", (np.float64(1), 0), {}, ShapeError, "no axis: the input is 0-d"),
    ]

    @pytest.mark.parametrize("offset", [-1e5, 1e5])
    def test_translated_by_the_maximum(self, offset):
        x = tg.Tensor([offset, offset], dtype="f8", requires_grad=True)
        y = tg.logsumexp(x)
        assert y.item() == pytest.approx(offset + np.log(2), rel=1e-15)
        y.backward()
        np.testing.assert_allclose(x.grad, [0.5, 0.5], rtol=1e-10)

    def test_infinities_and_nan(self):
        low, high, nan = -np.inf, np.inf, np.nan
        x = [[low, low], [high, 0], [high, low], [high, high], [nan, high], [nan, low], [low, 3]]
        y = tg.logsumexp(np.array(x), axis=1)
        np.testing.assert_array_equal(y.value, [low, high, high, high, nan, nan, 3])

    def test_the_gradient_where_all_is_minus_infinity_is_zero(self):
        x = tg.Tensor([[-np.inf, -np.inf], [-np.inf, 2.0]], requires_grad=True)
        tg.logsumexp(x, axis=1).backward([1.0, 1.0])
        np.testing.assert_array_equal(x.grad, [[0, 0], [0, 1]])

    def test_of_nothing(self):
        x = tg.Tensor(np.ones((2, 0)), requires_grad=True)
        y = tg.logsumexp(x, axis=1)
        np.testing.assert_array_equal(y.value, [-np.inf, -np.inf])
        y.backward(np.ones(2))
        assert x.grad.shape == (2, 0)
        assert tg.logsumexp(x, axis=0).shape == (0,)

    def test_of_no_axis_is_the_identity(self):
        x = tg.Tensor(1.5, requires_grad=True)
        y = tg.logsumexp(x)
        assert y.shape == () and y.item() == 1.5
        y.backward()
        assert x.grad == 1
        np.testing.assert_allclose(tg.logsumexp([[1.0, 2.0]], axis=()).value, [[1, 2]])

    def test_equal_settings_make_equal_ops(self):
        x = tg.Tensor(np.ones((2, 2)), requires_grad=True)
        assert tg.logsumexp(x, [0, 1]).op == tg.logsumexp(x, (0, 1)).op
