"""neg, abs, exp, log, sqrt against Python's math, and where they have no value or no slope."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract
from tests.strategies import elementwise_problems
from tinygraph.errors import DtypeError


def refuses(name, array, words="float32 or float64"):
    return Bad(str(array.dtype), (array,), {}, DtypeError, f"{name}: x: expected {words}")


INTS, BOOLS, HALF = np.array([1, 2]), np.array([True]), np.ones(2, np.float16)


class TestNeg(OpContract):
    function = staticmethod(tg.neg)
    reference = staticmethod(reference.neg)
    problems = elementwise_problems()
    bad_input = [refuses("neg", BOOLS, "float32, float64 or an integer"),
                 refuses("neg", HALF, "float32, float64 or an integer")]  # fmt: skip


class TestAbs(OpContract):
    function = staticmethod(tg.abs)
    reference = staticmethod(reference.absolute)
    problems = elementwise_problems()
    bad_input = [refuses("abs", HALF, "float32, float64, an integer or bool")]

    def test_derivative_at_zero(self):
        x = tg.Tensor([0.0, -0.0, -np.inf], requires_grad=True)
        y = abs(x)
        assert y.value.tolist() == [0, 0, np.inf] and not np.signbit(y.value).any()
        y.backward([5.0, 6.0, 7.0])
        assert x.grad.tolist() == [0, 0, -7]


class TestExp(OpContract):
    function = staticmethod(tg.exp)
    reference = staticmethod(reference.exp)
    problems = elementwise_problems()
    bad_input = [refuses("exp", a) for a in (INTS, BOOLS, HALF)]


class TestLog(OpContract):
    function = staticmethod(tg.log)
    reference = staticmethod(reference.log)
    problems = elementwise_problems(0.5, 3.0)
    bad_input = [refuses("log", a) for a in (INTS, BOOLS, HALF)]

    def test_outside_of_its_domain(self):
        x = tg.Tensor([0.0, -1.0], requires_grad=True)
        np.testing.assert_array_equal(tg.log(x).value, [-np.inf, np.nan])


class TestSqrt(OpContract):
    function = staticmethod(tg.sqrt)
    reference = staticmethod(reference.sqrt)
    problems = elementwise_problems(0.5, 3.0)
    bad_input = [refuses("sqrt", a) for a in (INTS, BOOLS, HALF)]

    def test_at_zero_and_below(self):
        x = tg.Tensor([0.0, -1.0], requires_grad=True)
        y = tg.sqrt(x)
        np.testing.assert_array_equal(y.value, [0, np.nan])
        y.backward(np.ones(2))
        assert x.grad[0] == np.inf


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integers_keep_their_dtype(dtype):
    x = tg.Tensor([1, 2], dtype=dtype)
    assert tg.neg(x).dtype == dtype and tg.abs(x).dtype == dtype
    assert tg.abs(tg.neg(tg.Tensor([-3, 4], dtype="int32"))).value.tolist() == [3, 4]
    assert tg.abs(tg.Tensor([True, False])).value.tolist() == [True, False]


@pytest.mark.parametrize("name", ["neg", "abs", "exp", "log", "sqrt"])
def test_saves_nothing_where_no_gradient_is_wanted(name):
    assert getattr(tg, name)([1.0]).saved is None
