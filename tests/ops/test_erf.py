"""erf and erfc against Python's own, on the whole line."""

import math
from decimal import Decimal, localcontext

import numpy as np

import tinygraph as tg
from tests.reference import elementwise
from tests.unary_contract import IntegersToFloats, UnaryContract, edges
from tinygraph.ops.elementwise.erf import SLOPE, erfc

inf, nan = math.inf, math.nan


def exact_erf(x):
    """2 / sqrt(pi) * sum of (-1)**n x**(2n + 1) / (n! (2n + 1)), in the digits of the context."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    total = term = x
    for n in range(1, 300):
        term *= -x * x / n
        total += term / (2 * n + 1)
    return total * 2 / pi.sqrt()


class TestErf(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.erf)
    reference = staticmethod(lambda x: elementwise(math.erf, x))
    conventions = [
        edges((0.0, 0.0, SLOPE), (-0.0, -0.0, SLOPE), (-inf, -1.0, 0.0), (nan, nan, nan))
    ]

    def test_within_2_units_in_the_last_place_of_float32(self):
        x = np.concatenate([np.linspace(-7, 7, 20011), np.geomspace(1e-30, 1, 2001)])
        x = x.astype(np.float32)
        want = np.array([math.erf(v) for v in x])
        units = np.abs(tg.erf(x).value - want) / np.spacing(np.abs(want).astype(np.float32))
        assert units.max() <= 2, x[units.argmax()]

    def test_1e_15_relative_in_float64_against_40_digits(self):
        x = np.concatenate([np.linspace(-6, 6, 401), np.geomspace(1e-30, 1, 101)])
        with localcontext() as digits:
            digits.prec = 60
            for value, got in zip(x, tg.erf(x).value, strict=True):
                want = exact_erf(Decimal(float(value)))
                assert abs(Decimal(float(got)) - want) <= abs(want) * Decimal("1e-15"), value


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
