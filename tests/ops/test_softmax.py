"""softmax and log_softmax against loops, and where exp would overflow."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import class_problems, numbers
from tinygraph.base.errors import DtypeError, ShapeError

BAD = [
    Bad("0-d", (1.0,), {}, ShapeError, "no axis: the input is 0-d"),
    Bad("axis", (np.ones((2, 2)), 2), {}, ShapeError, "an axis from -2 to 1"),
    Bad("no class", (np.ones((2, 0)),), {}, ShapeError, "at least one element along axis -1"),
    Bad("integers", ([1, 2],), {}, DtypeError, "float32 or float64"),
]

# Each way in which kernels deal rows out to threads.
LARGE_ROWS = tuple(
    Problem((3 * numbers(seed, shape),), {"axis": axis})
    for seed, (shape, axis) in enumerate(
        [
            ((300, 7), 1),  # a thread for a row, two blocks
            ((70, 9), 0),  # threads side by side over the columns, three slices
            ((3, 40, 5), 1),  # the same between other axes, two slices
            ((40, 100), 1),  # a warp for a row
            ((3, 1500), -1),  # a block for a row
            ((9000,), 0),  # two blocks for a row
        ]
    )
)


def rows(repeats, device):
    """Rows of infinities and NaN, in one slice or in several."""
    low, high, nan = -np.inf, np.inf, np.nan
    x = [[low, low], [high, 0], [high, low], [nan, high], [nan, low], [0, nan], [low, 3]]
    return tg.Tensor(np.repeat(x, repeats, axis=1), device=device)


class TestSoftmax(OpContract):
    function = staticmethod(tg.softmax)
    reference = staticmethod(reference.softmax)
    problems = class_problems()
    large_problems = LARGE_ROWS
    bad_input = BAD

    def test_large_inputs(self, device):
        x = tg.Tensor([1e30, 0.0, -1e30], device=device)
        np.testing.assert_array_equal(tg.softmax(x).value, [1, 0, 0])

    @pytest.mark.parametrize("repeats", [1, 9000])
    def test_infinities_and_nan(self, repeats, device):
        with np.errstate(invalid="ignore"):  # inf - inf
            y = tg.softmax(rows(repeats, device)).value
        assert np.isnan(y[:6]).all()
        np.testing.assert_allclose(y[6], np.repeat([0, 1 / repeats], repeats))


class TestLogSoftmax(OpContract):
    function = staticmethod(tg.log_softmax)
    reference = staticmethod(reference.log_softmax)
    problems = class_problems()
    large_problems = LARGE_ROWS
    bad_input = BAD

    def test_large_inputs(self, device):
        y = tg.log_softmax(tg.Tensor([1e30, 0.0], device=device))
        np.testing.assert_array_equal(y.value, np.float32([0, -1e30]))

    @pytest.mark.parametrize("repeats", [1, 9000])
    def test_infinities_and_nan(self, repeats, device):
        with np.errstate(invalid="ignore"):
            y = tg.log_softmax(rows(repeats, device)).value
        assert np.isnan(y[:6]).all()
        np.testing.assert_allclose(y[6], np.repeat([-np.inf, -np.log(repeats)], repeats))
