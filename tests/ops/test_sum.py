"""sum against loops over the elements that meet; integers, no elements, and no memory for gx."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem, claims_of
from tests.strategies import axis_problems, numbers
from tinygraph.base.errors import DtypeError, ShapeError

X = np.ones((2, 3))
BAD_AXES = [
    Bad("axis 2", (X, 2), {}, ShapeError, "axis: expected an axis from -2 to 1, got 2"),
    Bad("axis of a 0-d input", (1.0, 0), {}, ShapeError, "no axis: the input is 0-d"),
    Bad("axis twice", (X, (0, -2)), {}, ShapeError, "each axis once"),
    Bad("axis 0.5", (X, 0.5), {}, DtypeError, "an int, a tuple of ints or None"),
    Bad("axes", (X, "01"), {}, DtypeError, "an int, a tuple of ints or None"),
    Bad("float16", (X.astype("f2"),), {}, DtypeError, "float32 or float64, got float16"),
]
# Each way in which kernels deal sets out to threads; in the last two the axes change too often.
LARGE_SETS = tuple(
    Problem((numbers(seed, shape),), {"axis": axis})
    for seed, (shape, axis) in enumerate(
        [
            ((300, 7), 1),  # a thread for a set, two blocks
            ((70, 9), 0),  # threads side by side over the columns, three slices
            ((40, 100), 1),  # a warp for a set
            ((3, 1500), 1),  # a block for a set
            ((9000,), None),  # two blocks for a set
            ((8, 3, 5, 5), (0, 2, 3)),  # the statistics of a channel
            ((3, 2, 3, 2, 3), (1, 3)),
            ((2, 3, 2, 3, 2, 3), (0, 2, 4)),
            ((2, 3, 2, 3, 2, 3), (-1, 1, 3)),
        ]
    )
)


class TestSum(OpContract):
    function = staticmethod(tg.sum)
    reference = staticmethod(reference.sum_over)
    problems = axis_problems()
    large_problems = LARGE_SETS
    claims = claims_of(
        X, "axis", (None, "sum"), (0, "sum"), (-2, "sum"), (1, "map"), ((1, 0), "sum")
    )
    bad_input = BAD_AXES

    @pytest.mark.parametrize(
        ("dtype", "wide"),
        [("int8", "int64"), ("int32", "int64"), ("uint8", "int64"), ("bool", "int64")],
    )
    def test_integers_are_summed_in_64_bits(self, dtype, wide, device):
        y = tg.sum(tg.Tensor(np.ones((300, 2), dtype), device=device), axis=0)
        assert y.dtype == wide and y.value.tolist() == [300, 300]

    def test_the_largest_integers(self, device):
        big = np.array([2**64 - 3, 1], np.uint64)
        assert tg.sum(tg.Tensor(big, device=device)).item() == 2**64 - 2
        assert tg.sum(tg.Tensor([-(2**62), 2**62 - 1], dtype="i8", device=device)).item() == -1

    def test_a_long_float32_sum_is_as_exact_as_a_pairwise_one(self, device):
        """One addition after the other would be off by 1e-3 of it."""
        x = tg.Tensor(np.full(300_000, 0.1, np.float32), device=device)
        assert tg.sum(x).item() == pytest.approx(300_000 * float(np.float32(0.1)), rel=1e-6)

    def test_lists_and_numpy_integers_as_axes(self):
        assert tg.sum(X, [0, 1]).item() == tg.sum(X, (np.int64(0), 1)).item() == 6
        assert tg.sum(X, np.int32(-1)).value.tolist() == [3, 3]
        assert tg.sum(X, ()).value.tolist() == X.tolist()  # no axis: nothing is summed

    def test_the_gradient_is_a_view(self):
        x = tg.Tensor(X, requires_grad=True)
        y = tg.sum(x, 1)
        gy = np.array([5.0, 7.0])
        (gx,) = y.op.backward(None, gy, y.saved, (True,))
        assert np.shares_memory(gx, gy) and gx.tolist() == [[5, 5, 5], [7, 7, 7]]
