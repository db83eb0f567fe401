"""elu, selu and celu against their references, and at 0, NaN and the infinities."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tests import reference
from tests.op_contract import Bad
from tests.reference import elementwise
from tests.unary_contract import UnaryContract, edges
from tinygraph.base.errors import ArgumentError

inf, nan = math.inf, math.nan


class TestElu(UnaryContract):
    function = staticmethod(tg.elu)
    reference = staticmethod(reference.elu)
    settings = {}, {"alpha": 0.3}, {"alpha": -0.5}, {"alpha": 2}, {"alpha": 0.0}
    bad_settings = (
        Bad("alpha", ([1.0], inf), {}, ArgumentError, "elu: alpha: expected a finite number"),
        Bad("alpha None", ([1.0], None), {}, ArgumentError, "got None"),
    )


class TestSelu(UnaryContract):
    function = staticmethod(tg.selu)
    reference = staticmethod(lambda x: 1.0507009873554805 * reference.elu(x, 1.6732632423543772))
    conventions = [edges((nan, nan, nan), (inf, inf, 1.0507009873554805))]

    def test_layers_keep_mean_0_and_variance_1(self):
        """What alpha and scale are there for: of normal numbers come those of the same moments."""
        x = np.linspace(-12, 12, 200001)
        density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
        y = tg.selu(x).value
        assert (y * density).sum() == pytest.approx(0, abs=1e-9)
        assert (y * y * density).sum() == pytest.approx(1, abs=1e-9)

    def test_the_derivative_at_0_is_that_from_below(self, device):
        x = tg.Tensor([0.0], dtype="f8", requires_grad=True, device=device)
        tg.selu(x).backward([1.0])
        assert x.grad[0] == pytest.approx(1.0507009873554805 * 1.6732632423543772, rel=1e-15)


class TestCelu(UnaryContract):
    function = staticmethod(tg.celu)
    reference = staticmethod(
        lambda x, alpha=1.0: elementwise(lambda v: v if v > 0 else alpha * math.expm1(v / alpha), x)
    )
    settings = {}, {"alpha": 0.3}, {"alpha": 2}
    conventions = [
        edges((0.0, 0.0, 1.0), (-inf, -0.5, 0.0), (inf, inf, 1.0), (nan, nan, nan), alpha=0.5)
    ]
    bad_settings = (
        Bad("alpha", ([1.0], 0), {}, ArgumentError, "celu: alpha: expected a number above 0"),
    )


@pytest.mark.parametrize("function", [tg.elu, tg.celu])
def test_small_results_and_small_derivatives_keep_their_digits(function, device):
    x = tg.Tensor([-1e-12, -30.0], dtype="f8", requires_grad=True, device=device)
    y = function(x)
    assert y.value[0] == pytest.approx(-1e-12, rel=1e-11, abs=0)
    y.backward([1.0, 1.0])
    assert x.grad[1] == pytest.approx(math.exp(-30), rel=1e-14, abs=0)
