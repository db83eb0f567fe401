"""erf and erfc against Python's own, on the whole line."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tests.reference import elementwise
from tests.unary_contract import IntegersToFloats, UnaryContract, edges
from tinygraph.ops.erf import SLOPE, erfc

inf, nan = math.inf, math.nan


class TestErf(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.erf)
    reference = staticmethod(lambda x: elementwise(math.erf, x))
    conventions = [
        edges((0.0, 0.0, SLOPE), (-0.0, -0.0, SLOPE), (-inf, -1.0, 0.0), (nan, nan, nan))
    ]

    @pytest.mark.parametrize("dtype, digits", [(np.float64, 1e-14), (np.float32, 4e-7)])
    def test_all_digits_on_the_whole_line(self, dtype, digits):
        x = np.concatenate([np.linspace(-7, 7, 20011), np.geomspace(1e-30, 1, 2001)]).astype(dtype)
        np.testing.assert_allclose(tg.erf(x).value, [math.erf(v) for v in x], rtol=digits)


class TestErfc:
    def test_float64_to_1e_12_relative_on_the_whole_line(self):
        x = np.concatenate([np.linspace(-7, 26, 20011), np.linspace(-1, 1, 2001)])
        expected = [math.erfc(v) for v in x]
        np.testing.assert_allclose(erfc(x), expected, rtol=1e-12, atol=0)

    def test_erf_is_its_complement_also_near_0(self):
        x = np.linspace(-1, 1, 2001)
        np.testing.assert_allclose(1 - erfc(x), [math.erf(v) for v in x], rtol=1e-12, atol=3e-16)

    def test_ends_of_the_line(self):
        y = erfc(np.array([-np.inf, 0, np.inf, np.nan]))
        np.testing.assert_allclose(y, [2, 1, 0, np.nan], rtol=3e-16)

    def test_float32_stays_float32(self):
        x = np.linspace(-4, 4, 101, dtype=np.float32)
        y = erfc(x)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, [math.erfc(v) for v in x], rtol=5e-6)
