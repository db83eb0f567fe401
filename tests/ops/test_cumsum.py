"""cumsum against sums of each beginning; integers, empty axes, layouts."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import class_problems
from tinygraph.errors import DtypeError, ShapeError
from tinygraph.ops.cumsum import Cumsum

X = np.arange(6.0).reshape(2, 3)


class TestCumsum(OpContract):
    function = staticmethod(tg.cumsum)
    reference = staticmethod(reference.cumsum)
    problems = class_problems()
    bad_input = [
        Bad("axis", (X, 2), {}, ShapeError, "an axis from -2 to 1, got 2"),
        Bad("0-d", (1.0, 0), {}, ShapeError, "no axis: the input is 0-d"),
        Bad("None", (X, None), {}, DtypeError, "axis: expected an int, got None"),
        Bad("axes", (X, (0, 1)), {}, DtypeError, "axis: expected an int, got (0, 1)"),
        Bad("float16", (X.astype("f2"), 0), {}, DtypeError, "got float16"),
    ]

    def test_the_gradient_sums_from_the_end(self):
        x = tg.Tensor(X, requires_grad=True)
        tg.cumsum(x, 1).backward([[1.0, 10.0, 100.0], [0.0, 0.0, 2.0]])
        assert x.grad.tolist() == [[111, 110, 100], [2, 2, 2]]

    @pytest.mark.parametrize(
        ("dtype", "wide"),
        [("int8", "int64"), ("int32", "int64"), ("uint8", "uint64"), ("bool", "int64")],
    )
    def test_integers_are_summed_in_64_bits(self, dtype, wide):
        y = tg.cumsum(np.ones((300, 2), dtype), axis=0)
        assert y.dtype == wide and y.value[:, 1].tolist() == list(range(1, 301))

    @pytest.mark.parametrize("axis", [0, 1])
    def test_nothing_to_sum(self, axis):
        x = tg.Tensor(X[:0], requires_grad=True)
        y = tg.cumsum(x, axis)
        y.backward(np.ones((0, 3)))
        assert y.shape == x.grad.shape == (0, 3)

    def test_nan_shows_from_its_place_on(self):
        y = tg.cumsum([1.0, np.nan, 2.0], 0)
        np.testing.assert_array_equal(y.value, [1, np.nan, np.nan])

    @pytest.mark.parametrize(("axis", "claim"), [(1, "map"), (-1, "map"), (0, None), (-2, None)])
    def test_what_it_claims_of_samples(self, axis, claim):
        assert Cumsum(axis).batch((tg.Tensor(X).spec,), (True,)) == claim

    def test_as_a_method(self):
        assert tg.Tensor(X).cumsum(axis=0).value.tolist() == [[0, 1, 2], [3, 5, 7]]
