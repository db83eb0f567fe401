"""Functions of one number against Python's math, and where they have no value or no slope."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.reference import elementwise
from tests.unary_contract import BOOLS, INTEGERS, IntegersToFloats, UnaryContract, edges

inf, nan = math.inf, math.nan


class TestNeg(UnaryContract):
    function = staticmethod(tg.neg)
    reference = staticmethod(reference.neg)
    takes = INTEGERS


class TestAbs(UnaryContract):
    function = staticmethod(tg.abs)
    reference = staticmethod(reference.absolute)
    takes = BOOLS


class TestSquare(UnaryContract):
    function = staticmethod(tg.square)
    reference = staticmethod(lambda x: elementwise(lambda v: v * v, x))
    takes = INTEGERS
    conventions = [edges((0.0, 0.0, 0.0), (-inf, inf, -inf), (nan, nan, nan), (-3.0, 9.0, -6.0))]


class TestSqrt(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.sqrt)
    reference = staticmethod(reference.sqrt)
    interval = 0.5, 3.0


class TestRsqrt(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.rsqrt)
    reference = staticmethod(lambda x: elementwise(lambda v: 1 / math.sqrt(v), x))
    interval = 0.5, 3.0
    conventions = [
        edges((0.0, inf, -inf), (-0.0, -inf, inf), (inf, 0.0, -0.0), (-1.0, nan, nan)),
        edges((0.25, 2.0, -4.0)),
    ]


class TestReciprocal(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.reciprocal)
    reference = staticmethod(lambda x: elementwise(lambda v: 1 / v, x))
    interval = 0.5, 3.0
    conventions = [
        edges((0.0, inf, -inf), (-0.0, -inf, -inf), (-inf, -0.0, -0.0), (-2.0, -0.5, -0.25))
    ]


class TestExp(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.exp)
    reference = staticmethod(reference.exp)


class TestExpm1(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.expm1)
    reference = staticmethod(lambda x: elementwise(math.expm1, x))
    conventions = [edges((-0.0, -0.0, 1.0), (1e-300, 1e-300, 1.0), (-inf, -1.0, 0.0))]

    def test_a_small_slope_keeps_its_digits(self, device):
        x = tg.Tensor([-40.0], dtype="f8", requires_grad=True, device=device)
        tg.expm1(x).backward([1.0])
        assert x.grad[0] == pytest.approx(math.exp(-40), rel=1e-14)


class TestLog(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.log)
    reference = staticmethod(reference.log)
    interval = 0.5, 3.0


class TestLog1p(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.log1p)
    reference = staticmethod(lambda x: elementwise(math.log1p, x))
    interval = -0.5, 3.0
    conventions = [edges((-0.0, -0.0, 1.0), (1e-300, 1e-300, 1.0), (-1.0, -inf, inf))]


class TestLog2(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.log2)
    reference = staticmethod(lambda x: elementwise(math.log2, x))
    interval = 0.5, 3.0
    conventions = [edges((1.0, 0.0, 1 / math.log(2)), (0.0, -inf, inf), (inf, inf, 0.0))]


class TestSin(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.sin)
    reference = staticmethod(lambda x: elementwise(math.sin, x))
    conventions = [edges((0.0, 0.0, 1.0), (-0.0, -0.0, 1.0), (inf, nan, nan))]


class TestCos(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.cos)
    reference = staticmethod(lambda x: elementwise(math.cos, x))
    conventions = [edges((0.0, 1.0, -0.0), (-0.0, 1.0, 0.0), (inf, nan, nan))]


NAMES = [one.removeprefix("Test").lower() for one in dict(globals()) if one.startswith("Test")]
EXACT = [tg.neg, tg.abs, tg.square]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_integers_keep_their_dtype(dtype):
    x = tg.Tensor([1, 2], dtype=dtype)
    assert all(function(x).dtype == dtype for function in EXACT)
    assert tg.square(x).value.tolist() == [1, 4]
    assert tg.abs(tg.neg(tg.Tensor([-3, 4], dtype="int32"))).value.tolist() == [3, 4]
    assert tg.abs(tg.tensor([True, False])).value.tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_kernel_of_integers(kernel_device, dtype):
    """Modulo 2^bits, as in numpy: the smallest integer is its own opposite, and 0 - 1 the last."""
    limits = np.iinfo(dtype)
    x = tg.Tensor(np.array([limits.min, limits.max, 3], dtype), device=kernel_device)
    for function in EXACT:
        y = function(x)
        assert y.dtype == dtype and y.numpy().tolist() == function(x.numpy()).value.tolist()


def test_kernel_of_bools(kernel_device):
    y = tg.abs(tg.tensor([True, False], device=kernel_device))
    assert y.dtype == bool and y.numpy().tolist() == [True, False]


@pytest.mark.parametrize("name", NAMES)
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
