"""cumsum against sums of each beginning; integers, empty axes, layouts."""

import math
import tracemalloc

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, claims_of
from tests.ops.test_softmax import LARGE_ROWS
from tests.strategies import class_problems
from tinygraph.base.errors import DtypeError, ShapeError

X = np.arange(6.0).reshape(2, 3)


class TestCumsum(OpContract):
    function = staticmethod(tg.cumsum)
    reference = staticmethod(reference.cumsum)
    problems = class_problems()
    large_problems = LARGE_ROWS[:-1]  # loops would take a minute for the longest row
    claims = claims_of(X, "axis", (1, "map"), (-1, "map"), (0, None), (-2, None))
    bad_input = [
        Bad("axis", (X, 2), {}, ShapeError, "an axis from -2 to 1, got 2"),
        Bad("0-d", (1.0, 0), {}, ShapeError, "no axis: the input is 0-d"),
        Bad("None", (X, None), {}, DtypeError, "axis: expected an int, got None"),
        Bad("axes", (X, (0, 1)), {}, DtypeError, "axis: expected an int, got (0, 1)"),
        Bad("float16", (X.astype("f2"), 0), {}, DtypeError, "got float16"),
    ]

    @pytest.mark.parametrize(
        ("dtype", "wide"),
        [("int8", "int64"), ("int32", "int64"), ("uint8", "int64"), ("bool", "int64")],
    )
    def test_integers_are_summed_in_64_bits(self, dtype, wide, device):
        y = tg.cumsum(tg.Tensor(np.ones((300, 2), dtype), device=device), axis=0)
        assert y.dtype == wide and y.value[:, 1].tolist() == list(range(1, 301))

    def test_the_largest_integers(self, device):
        x = tg.Tensor(np.array([1, 2**63, 2**63 - 2], np.uint64), device=device)
        assert tg.cumsum(x, 0).value.tolist() == [1, 2**63 + 1, 2**64 - 1]

    # A thread, a warp, a block, two blocks for a row, and slices of columns.
    @pytest.mark.parametrize(
        ("shape", "axis"), [((3, 20), 1), ((2, 900), 1), ((2, 5000), 1), ((9000,), 0), ((70, 3), 0)]
    )
    def test_integers_are_summed_exactly(self, shape, axis, device):
        x = np.random.default_rng(0).integers(-(2**40), 2**40, shape)
        y = tg.cumsum(tg.Tensor(x, device=device), axis)
        np.testing.assert_array_equal(y.value, np.cumsum(x, axis))

    # One by one, 0.1 in float32 is wrong by 1e-2 after 2^20 additions.
    @pytest.mark.parametrize(
        ("shape", "axis"),
        [
            ((1 << 20,), 0),
            ((1 << 17, 2), 0),
            ((3, 70_001), -1),
            ((5000, 3, 9), 0),
            ((2, 9001, 3), 1),
            ((700, 40), 1),
            ((100, 65), 1),
            ((1, 25), 1),
        ],
    )
    def test_long_axes_in_float32(self, shape, axis, device):
        """Against float64: an error of log(n) roundings in kernels, of one on the cpu."""
        terms = 0.2 * np.random.default_rng(2).random(shape)
        for x in (np.full(shape, 0.1, np.float32), terms.astype(np.float32)):
            node = tg.Tensor(x, requires_grad=True, device=device)
            y = tg.cumsum(node, axis)
            y.backward(x)
            wide = x.astype(np.float64)
            from_the_end = np.flip(np.cumsum(np.flip(wide, axis), axis), axis)
            roundings = 1 if device == "cpu" else 3 * math.log2(shape[axis])
            tolerance = roundings * 2.0**-24
            np.testing.assert_allclose(y.value, np.cumsum(wide, axis), rtol=tolerance)
            np.testing.assert_allclose(node.grad, from_the_end, rtol=tolerance)

    def test_long_axes_of_views_and_in_a_plan(self):
        base = np.random.default_rng(3).random((90, 30, 200)).astype(np.float32)
        for x in (base.T, base[::-2, :, 50:], np.broadcast_to(base[:, :1], base.shape)):
            for axis in range(3):
                wide = np.cumsum(x, axis, dtype=np.float64)
                step = tg.compile(lambda v, axis=axis: tg.cumsum(v, axis))
                for y in (tg.cumsum(tg.Tensor(x), axis), step(tg.Tensor(x)), step(tg.Tensor(x))):
                    np.testing.assert_allclose(y.value, wide, rtol=2.0**-24)

    def test_memory_is_not_doubled(self):
        x = tg.Tensor(np.ones(1 << 21, np.float32))
        tracemalloc.start()
        try:
            tg.cumsum(x, 0)
            assert tracemalloc.get_traced_memory()[1] < x.value.nbytes + (1 << 20)
        finally:
            tracemalloc.stop()

    @pytest.mark.second
    def test_more_ones_than_float32_can_count(self):
        n = 1 << 25
        x = tg.Tensor(np.ones(n, np.float32), requires_grad=True)
        y = tg.cumsum(x, 0)
        y.backward(x.value)
        counted = np.arange(1, n + 1).astype(np.float32)
        np.testing.assert_array_equal(y.value, counted)
        np.testing.assert_array_equal(x.grad, counted[::-1])

    def test_two_blocks_for_a_row_under_the_checker(self):
        """Whole numbers, so that every order of addition gives the same."""
        x, g = np.random.default_rng(1).integers(-9, 10, (2, 9000)).astype(np.float32)
        node = tg.Tensor(x, requires_grad=True, device="emulator")
        with tg.cuda.checking():
            y = tg.cumsum(node, 0)
            y.backward(g)
        np.testing.assert_array_equal(y.value, np.cumsum(x))
        np.testing.assert_array_equal(node.grad, np.cumsum(g[::-1])[::-1])

    @pytest.mark.parametrize("length", [1, 5, 40, 2000, 9000])
    def test_minus_zero_stays(self, length, device):
        """As in numpy: the first sum is the first element."""
        y = tg.cumsum(tg.Tensor(np.full(length, -0.0), device=device), 0)
        assert np.signbit(y.value).all()

    @pytest.mark.parametrize(("length", "place"), [(3, 1), (100, 40), (9000, 8500)])
    def test_nan_shows_from_its_place_on(self, length, place, device):
        x = np.ones(length)
        x[place] = np.nan
        y = tg.cumsum(tg.Tensor(x, device=device), 0).value
        np.testing.assert_array_equal(y[:place], np.arange(1, place + 1))
        assert np.isnan(y[place:]).all()
