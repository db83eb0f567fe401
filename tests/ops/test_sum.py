"""sum against loops over the elements that meet; integers, no elements, and no memory for gx."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import axis_problems
from tinygraph.errors import DtypeError, ShapeError
from tinygraph.ops.sum import Sum

X = np.ones((2, 3))
BAD_AXES = [
    Bad("axis 2", (X, 2), {}, ShapeError, "axis: expected an axis from -2 to 1, got 2"),
    Bad("axis of a 0-d input", (1.0, 0), {}, ShapeError, "no axis: the input is 0-d"),
    Bad("axis twice", (X, (0, -2)), {}, ShapeError, "each axis once"),
    Bad("axis 0.5", (X, 0.5), {}, DtypeError, "an int, a tuple of ints or None"),
    Bad("axes", (X, "01"), {}, DtypeError, "an int, a tuple of ints or None"),
    Bad("float16", (X.astype("f2"),), {}, DtypeError, "float32 or float64, got float16"),
]


class TestSum(OpContract):
    function = staticmethod(tg.sum)
    reference = staticmethod(reference.sum_over)
    problems = axis_problems()
    bad_input = BAD_AXES

    @pytest.mark.parametrize(
        ("dtype", "wide"),
        [("int8", "int64"), ("int32", "int64"), ("uint8", "uint64"), ("bool", "int64")],
    )
    def test_integers_are_summed_in_64_bits(self, dtype, wide):
        y = tg.sum(np.ones((300, 2), dtype), axis=0)
        assert y.dtype == wide and y.value.tolist() == [300, 300]

    def test_the_sum_of_nothing_is_0(self):
        assert tg.sum(np.ones((0, 3)), 0).value.tolist() == [0, 0, 0]
        assert tg.sum(np.ones((0, 3)), 1).shape == (0,)

    def test_lists_and_numpy_integers_as_axes(self):
        assert tg.sum(X, [0, 1]).item() == tg.sum(X, (np.int64(0), 1)).item() == 6
        assert tg.sum(X, np.int32(-1)).value.tolist() == [3, 3]
        assert tg.sum(X, ()).value.tolist() == X.tolist()  # no axis: nothing is summed

    def test_as_a_method(self):
        assert tg.Tensor(X).sum(0, keepdims=True).shape == (1, 3)

    def test_the_gradient_is_a_view(self):
        x = tg.Tensor(X, requires_grad=True)
        y = tg.sum(x, 1)
        gy = np.array([5.0, 7.0])
        (gx,) = y.op.backward(None, gy, y.saved, (True,))
        assert np.shares_memory(gx, gy) and gx.tolist() == [[5, 5, 5], [7, 7, 7]]

    @pytest.mark.parametrize(
        ("axis", "claim"), [(None, "sum"), (0, "sum"), (-2, "sum"), (1, "map"), ((1, 0), "sum")]
    )
    @pytest.mark.parametrize("keepdims", [True, False])
    def test_what_it_claims_of_samples(self, axis, keepdims, claim):
        assert Sum(axis, keepdims).batch((tg.Tensor(X).spec,), (True,)) == claim
