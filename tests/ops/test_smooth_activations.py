"""silu, mish, logsigmoid and softsign against their references, far from 0 and at infinities."""

import math

import numpy as np
import pytest

import tinygraph as tg
from tests.reference import elementwise
from tests.unary_contract import IntegersToFloats, UnaryContract, edges

inf, nan = math.inf, math.nan


def sigmoid(v):
    return 1 / (1 + math.exp(-v)) if v > -700 else math.exp(v)


class TestSilu(UnaryContract):
    function = staticmethod(tg.silu)
    reference = staticmethod(lambda x: elementwise(lambda v: v * sigmoid(v), x))
    conventions = [
        edges((0.0, 0.0, 0.5), (-inf, -0.0, -0.0), (inf, inf, 1.0), (nan, nan, nan)),
        edges((1e300, 1e300, 1.0), (-1e300, -0.0, -0.0)),
    ]


class TestMish(UnaryContract):
    function = staticmethod(tg.mish)
    reference = staticmethod(
        lambda x: elementwise(lambda v: v * math.tanh(math.log1p(math.exp(v))), x)
    )
    conventions = [
        edges((-inf, -0.0, 0.0), (inf, inf, 1.0), (nan, nan, nan)),
        edges((1e300, 1e300, 1.0), (-1e300, -0.0, 0.0)),
    ]


class TestLogsigmoid(UnaryContract):
    function = staticmethod(tg.logsigmoid)
    reference = staticmethod(lambda x: elementwise(lambda v: math.log(sigmoid(v)), x))
    conventions = [
        edges((-inf, -inf, 1.0), (inf, 0.0, 0.0), (nan, nan, nan)),
        edges((1e300, 0.0, 0.0), (-1e300, -1e300, 1.0)),
    ]


class TestSoftsign(IntegersToFloats, UnaryContract):
    function = staticmethod(tg.softsign)
    reference = staticmethod(lambda x: elementwise(lambda v: v / (1 + abs(v)), x))
    conventions = [
        edges((0.0, 0.0, 1.0), (-0.0, -0.0, 1.0), (1e300, 1.0, 0.0), (-1e300, -1.0, 0.0)),
        edges((inf, nan, 0.0), (nan, nan, nan)),
    ]


@pytest.mark.parametrize(
    "function, formula",
    [
        (tg.silu, lambda v: v * math.exp(v)),
        (tg.mish, lambda v: v * math.exp(v)),
        (tg.logsigmoid, lambda v: -math.exp(-v)),
    ],
)
def test_small_results_keep_their_digits(function, formula, device):
    """Where all that is left of the formula is its exponential."""
    x = np.array([40.0, 80.0]) * (1 if function is tg.logsigmoid else -1)
    y = function(tg.Tensor(x, device=device)).numpy()
    np.testing.assert_allclose(y, [formula(v) for v in x], rtol=1e-14)


@pytest.mark.parametrize("function", [tg.silu, tg.mish, tg.logsigmoid, tg.softsign])
def test_far_from_0_in_float32(function, device):
    """Exponentials overflow sooner there, and nothing becomes NaN."""
    x = np.float32([-3e38, -900, -100, -41, 41, 89, 100, 3e38])
    node, exact = (tg.Tensor(v, requires_grad=True, device=device) for v in (x, x.astype("f8")))
    for leaf in (node, exact):
        y = function(leaf)
        y.backward(np.ones(8))
    np.testing.assert_allclose(function(node).numpy(), function(exact).numpy(), 1e-6, 1e-35)
    np.testing.assert_allclose(
        *(leaf.device.to_numpy(leaf.grad) for leaf in (node, exact)), 1e-6, 1e-35
    )
