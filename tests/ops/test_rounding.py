"""sign, floor, ceil, trunc and round against Python's own, at whole numbers, halves and NaN."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tests.reference import elementwise
from tests.unary_contract import INTEGERS, UnaryContract, edges
from tinygraph.base.errors import ArgumentError, DtypeError

inf, nan = math.inf, math.nan


BETWEEN = -2.9, 3.1  # of 700 numbers from the one to the other none is whole


class TestSign(UnaryContract):
    function = staticmethod(tg.sign)
    reference = staticmethod(lambda x: elementwise(lambda v: float(v > 0) - float(v < 0), x))
    takes = INTEGERS
    conventions = [edges((0.0, 0.0, 0.0), (-0.0, 0.0, 0.0), (-inf, -1.0, 0.0), (nan, nan, 0.0))]

    @pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
    def test_kernel_of_integers(self, kernel_device, dtype):
        x = np.array([0, 3, np.iinfo(dtype).min], dtype)
        y = tg.sign(tg.Tensor(x, device=kernel_device))
        assert y.dtype == dtype and y.numpy().tolist() == np.sign(x).tolist()


class TestFloor(UnaryContract):
    interval = BETWEEN
    takes = INTEGERS
    function = staticmethod(tg.floor)
    reference = staticmethod(lambda x: elementwise(lambda v: float(math.floor(v)), x))
    conventions = [edges((-0.5, -1.0, 0.0), (3.0, 3.0, 0.0), (-0.0, -0.0, 0.0), (inf, inf, 0.0))]


class TestCeil(UnaryContract):
    interval = BETWEEN
    takes = INTEGERS
    function = staticmethod(tg.ceil)
    reference = staticmethod(lambda x: elementwise(lambda v: float(math.ceil(v)), x))
    conventions = [edges((-0.5, -0.0, 0.0), (3.0, 3.0, 0.0), (0.1, 1.0, 0.0), (nan, nan, 0.0))]


class TestTrunc(UnaryContract):
    interval = BETWEEN
    takes = INTEGERS
    function = staticmethod(tg.trunc)
    reference = staticmethod(lambda x: elementwise(lambda v: float(math.trunc(v)), x))
    conventions = [edges((-0.5, -0.0, 0.0), (-3.0, -3.0, 0.0), (1.9, 1.0, 0.0), (-inf, -inf, 0.0))]


class TestRound(UnaryContract):
    interval = BETWEEN
    takes = INTEGERS
    function = staticmethod(tg.round)
    reference = staticmethod(lambda x: elementwise(lambda v: float(round(v)), x))
    conventions = [
        edges((0.5, 0.0, 0.0), (1.5, 2.0, 0.0), (2.5, 2.0, 0.0), (-0.5, -0.0, 0.0)),
        edges((0.49999999999999994, 0.0, 0.0), (4503599627370497.5, 4503599627370498.0, 0.0)),
    ]


@pytest.mark.parametrize("decimals", [-2, -1, 1, 2])
def test_so_many_decimals(decimals, device):
    numbers = [1.118, 126.5, -0.26, -1249.75, inf, -inf]
    x = tg.Tensor(numbers, dtype=np.float64, device=device, requires_grad=True)
    y = tg.round(x, decimals=decimals)
    finite = [round(v, decimals) for v in numbers[:4]]
    np.testing.assert_allclose(y.numpy(), [*finite, inf, -inf], rtol=1e-15)
    y[:4].sum().backward()
    assert not x.device.to_numpy(x.grad).any()


def test_decimals_of_integers():
    x = tg.tensor([15, -7])
    assert x.round(decimals=2).numpy().tolist() == [15, -7]
    with pytest.raises(ArgumentError, match="round: decimals: expected 0 or more for integers"):
        tg.round(x, decimals=-1)
    with pytest.raises(DtypeError, match="round: x"):
        tg.round(tg.tensor([True]), decimals=1)
    with pytest.raises(ArgumentError, match="round: decimals"):
        tg.round(x, decimals=0.5)


@pytest.mark.parametrize("function", [tg.floor, tg.ceil, tg.trunc, tg.round])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64"])
def test_integers_are_whole(function, dtype, device):
    limits = np.iinfo(dtype)
    x = tg.Tensor(np.array([limits.min, 3, limits.max], dtype), device=device)
    y = function(x)
    assert y.dtype == dtype and y.numpy().tolist() == [limits.min, 3, limits.max]
