"""clip against comparisons of numbers, and its conventions: bounds, NaN, infinities, integers."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, Convention, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.base.errors import ArgumentError, DtypeError

X = np.array([-2.0, 0.5, 3.0])
WHOLE = np.array([-2, 0, 3])


@st.composite
def clip_problems(draw):
    """Any array, and one bound or both; equal ones too, but none that makes everything infinite."""
    low = draw(st.sampled_from([-np.inf, -1, -0.5, 0.3]))
    low, high = sorted([low, draw(st.sampled_from([-0.5, 0.3, 1, np.inf]))])
    kwargs = draw(st.sampled_from([{"min": low}, {"max": high}, {"min": low, "max": high}]))
    return draw(elementwise_problems())._replace(kwargs=kwargs)


class TestClip(OpContract):
    function = staticmethod(tg.clip)
    reference = staticmethod(reference.clip)
    problems = clip_problems()
    large_problems = (Problem((np.sin(np.arange(700.0)),), {"min": -0.5, "max": 0.25}),)
    conventions = [
        Convention(
            "NaN and infinities",
            ([np.nan, -np.inf, np.inf, 0.0],),
            [np.nan, -1, 1, 0],
            ([0, 0, 0, 1],),
            {"min": -1, "max": 1},
        ),
        Convention("equal bounds", (X,), [0.5] * 3, ([0, 0, 0],), {"min": 0.5, "max": 0.5}),
    ]
    bad_input = [
        Bad("no bound", (X,), {}, ArgumentError, "at least one bound, got None for both"),
        Bad("crossed", (X, 1, 0.5), {}, ArgumentError, "a min not above max, got 1 and 0.5"),
        Bad("nan", (X, np.nan), {}, ArgumentError, "min: expected a number or None, got nan"),
        Bad("word", (X, None, "1"), {}, ArgumentError, "max: expected a number or None, got '1'"),
        Bad("huge", (X, 10**400), {}, ArgumentError, "a number or None"),
        Bad("an array", (X, X), {}, ArgumentError, "tg.minimum(tg.maximum(x, min), max)"),
        Bad("a tensor", (X, tg.Tensor(0.0)), {}, ArgumentError, "a number or None, got Tensor(0."),
        Bad("range", (WHOLE.astype("u1"), 0, 256), {}, ArgumentError, "a number that uint8"),
        Bad("bools", (X > 0, False), {}, DtypeError, "float32, float64 or an integer, got bool"),
        Bad("float16", (X.astype("f2"), 0), {}, DtypeError, "got float16"),
    ]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_derivative_is_1_at_the_bounds(self, dtype):
        """0.1 is rounded to the dtype of x, so that it meets a bound of 0.1."""
        x = tg.Tensor(np.array([0.1, 0.2, 0.1 - 1e-6, 0.2 + 1e-6], dtype), requires_grad=True)
        tg.clip(x, 0.1, 0.2).backward([5.0, 6.0, 7.0, 8.0])
        assert x.grad.tolist() == [5, 6, 0, 0]

    def test_an_upstream_gradient_that_is_not_finite_stays_outside(self):
        x = tg.Tensor([2.0, 2.0, 0.0], requires_grad=True)
        tg.clip(x, max=1).backward([np.nan, np.inf, np.nan])
        np.testing.assert_array_equal(x.grad, [0, 0, np.nan])

    def test_bounds_do_not_promote(self):
        x = X.astype("f4")
        assert tg.clip(x, np.float64(0.5), 1e300).dtype == np.float32
        assert tg.clip(x, max=1e300).value.tolist() == x.tolist()

    def test_integers_become_floats_beside_a_float(self):
        y = tg.clip(WHOLE.astype("i1"), 0.5, 1)
        assert y.dtype == np.float32 and y.value.tolist() == np.clip(WHOLE, 0.5, 1).tolist()
        assert tg.clip(WHOLE, max=np.float64(0.5)).dtype == np.float32
        assert tg.clip(WHOLE > 0, 1, 2).dtype == np.int64

    def test_integers_are_exact(self):
        big = 2**53 + 1  # a float64 cannot hold it
        y = tg.clip(np.array([big + 1, 0]), np.int32(1), big)
        assert y.dtype == np.int64 and y.value.tolist() == [big, 1]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_kernel_at_its_bounds_nan_and_infinities(self, kernel_device, dtype):
        values = np.array([np.nan, -np.inf, np.inf, 0.1, 0.2, -0.0, 0.1 - 1e-6, 0.2 + 1e-6], dtype)
        x = tg.Tensor(values, requires_grad=True, device=kernel_device)
        y = tg.clip(x, 0.1, 0.2)
        low, high = dtype(0.1), dtype(0.2)
        np.testing.assert_array_equal(y.numpy(), [np.nan, low, high, low, high, low, low, high])
        y.backward(np.array([1, np.inf, np.nan, 4, 5, 6, 7, 8], dtype))
        assert x.device.to_numpy(x.grad).tolist() == [0, 0, 0, 4, 5, 0, 0, 0]
        open_below = -np.inf if dtype == np.float32 else -1e300  # beyond the range of a float32
        assert tg.clip(x, -1e300).numpy()[1:3].tolist() == [open_below, np.inf]

    @pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64"])
    def test_kernel_of_integers(self, kernel_device, dtype):
        ends = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = tg.Tensor(np.array([*ends, 3], dtype), device=kernel_device)
        assert tg.clip(x, min=5).numpy().tolist() == [5, ends[1], 5]
        assert tg.clip(x, max=2).numpy().tolist() == [ends[0], 2, 2]
        assert tg.clip(x, *ends).dtype == dtype
