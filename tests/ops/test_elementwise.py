"""neg, abs, exp, log, sqrt against Python's math, and where they have no value or no slope."""

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad, OpContract, Problem
from tests.strategies import elementwise_problems
from tinygraph.errors import DtypeError


def refuses(name, array, words="float32 or float64"):
    return Bad(str(array.dtype), (array,), {}, DtypeError, f"{name}: x: expected {words}")


INTS, BOOLS, HALF = np.array([1, 2]), np.array([True]), np.ones(2, np.float16)


LARGE = (Problem((1.5 + np.sin(np.arange(700.0)),)),)  # three blocks


class TestNeg(OpContract):
    function = staticmethod(tg.neg)
    reference = staticmethod(reference.neg)
    problems = elementwise_problems()
    large_problems = LARGE
    bad_input = [
        refuses("neg", BOOLS, "float32, float64 or an integer"),
        refuses("neg", HALF, "float32, float64 or an integer"),
    ]


class TestAbs(OpContract):
    function = staticmethod(tg.abs)
    reference = staticmethod(reference.absolute)
    problems = elementwise_problems()
    large_problems = LARGE
    bad_input = [refuses("abs", HALF, "float32, float64, an integer or bool")]


class TestExp(OpContract):
    function = staticmethod(tg.exp)
    reference = staticmethod(reference.exp)
    problems = elementwise_problems()
    large_problems = LARGE
    bad_input = [refuses("exp", a) for a in (INTS, BOOLS, HALF)]


class TestLog(OpContract):
    function = staticmethod(tg.log)
    reference = staticmethod(reference.log)
    problems = elementwise_problems(0.5, 3.0)
    large_problems = LARGE
    bad_input = [refuses("log", a) for a in (INTS, BOOLS, HALF)]


class TestSqrt(OpContract):
    function = staticmethod(tg.sqrt)
    reference = staticmethod(reference.sqrt)
    problems = elementwise_problems(0.5, 3.0)
    large_problems = LARGE
    bad_input = [refuses("sqrt", a) for a in (INTS, BOOLS, HALF)]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integers_keep_their_dtype(dtype):
    x = tg.Tensor([1, 2], dtype=dtype)
    assert tg.neg(x).dtype == dtype and tg.abs(x).dtype == dtype
    assert tg.abs(tg.neg(tg.Tensor([-3, 4], dtype="int32"))).value.tolist() == [3, 4]
    assert tg.abs(tg.Tensor([True, False])).value.tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_kernel_of_integers(kernel_device, dtype):
    """Modulo 2^bits, as in numpy: the smallest integer is its own opposite, and 0 - 1 the last."""
    limits = np.iinfo(dtype)
    x = tg.Tensor(np.array([limits.min, limits.max, 3], dtype), device=kernel_device)
    for function in (tg.neg, tg.abs):
        y = function(x)
        assert y.dtype == dtype and y.numpy().tolist() == function(x.numpy()).value.tolist()


def test_kernel_of_bools(kernel_device):
    y = tg.abs(tg.Tensor([True, False], device=kernel_device))
    assert y.dtype == bool and y.numpy().tolist() == [True, False]


@pytest.mark.parametrize("name", ["neg", "abs", "exp", "log", "sqrt"])
def test_kernel_at_the_edges(kernel_device, name):
    """The values and slopes of numpy at zeros, infinities, NaN, and out of the domain."""
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], np.float32)
    results = []
    for device in ("cpu", kernel_device):
        x = tg.Tensor(edges, requires_grad=True, device=device)
        with np.errstate(all="ignore"):
            y = getattr(tg, name)(x)
            y.backward(np.full(6, 2, np.float32))
        results.append((y.numpy(), x.device.to_numpy(x.grad)))
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        known = ~np.isnan(expected)  # a NaN may have either sign
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))
