"""Initialisers: bounds and moments of their distributions, by the formulas of the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.engine.random import Generator
from tinygraph.nn import init


def weight(*shape, dtype="float32"):
    return nn.Parameter(np.zeros(shape), dtype=dtype)


def assert_uniform(values, bound, low=None):
    """Bounds, and mean and variance within four standard errors of a uniform distribution."""
    low = -bound if low is None else low
    width, n = bound - low, values.size
    v = values.astype(np.float64)
    assert v.min() >= low * (1 + 1e-6) - 1e-12 and v.max() <= bound * (1 + 1e-6)
    assert v.max() > bound - 0.01 * width and v.min() < low + 0.01 * width
    assert abs(v.mean() - (low + bound) / 2) < 4 * width / math.sqrt(12 * n)
    # the variance of (x - mean)**2 for a uniform distribution is width**4 / 180
    assert abs(v.var() - width**2 / 12) < 4 * width**2 / math.sqrt(180 * n)


def assert_normal(values, mean, std):
    """Mean, variance and kurtosis within four standard errors of a normal distribution."""
    v, n = values.astype(np.float64), values.size
    assert abs(v.mean() - mean) < 4 * std / math.sqrt(n)
    assert abs(v.var() - std**2) < 4 * std**2 * math.sqrt(2 / n)
    kurtosis = np.mean(((v - mean) / std) ** 4)
    assert abs(kurtosis - 3) < 4 * math.sqrt(96 / n), "a uniform distribution has 1.8"


@pytest.fixture(autouse=True)
def seed():
    tg.manual_seed(11)


CASES = [  # shape, fan_in, fan_out
    ((80, 120), 120, 80),
    ((30, 20, 3, 5), 300, 450),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "fan_in", "fan_out"), CASES)
def test_kaiming(shape, fan_in, fan_out, dtype):
    w = weight(*shape, dtype=dtype)
    array = w.value
    assert init.kaiming_uniform_(w) is w
    assert_uniform(array, math.sqrt(6 / fan_in))
    init.kaiming_uniform_(w, a=math.sqrt(5))
    assert_uniform(array, 1 / math.sqrt(fan_in))
    init.kaiming_uniform_(w, mode="fan_out", nonlinearity="relu")
    assert_uniform(array, math.sqrt(6 / fan_out))
    init.kaiming_normal_(w)
    assert_normal(array, 0, math.sqrt(2 / fan_in))
    init.kaiming_normal_(w, a=1.0, mode="fan_out")
    assert_normal(array, 0, math.sqrt(1 / fan_out))
    init.kaiming_normal_(w, nonlinearity="tanh")
    assert_normal(array, 0, 5 / 3 / math.sqrt(fan_in))
    assert w.value is array and w.dtype == dtype


@pytest.mark.parametrize(("shape", "fan_in", "fan_out"), CASES)
def test_xavier(shape, fan_in, fan_out):
    w = weight(*shape)
    assert_uniform(init.xavier_uniform_(w).value, math.sqrt(6 / (fan_in + fan_out)))
    assert_uniform(init.xavier_uniform_(w, gain=2).value, 2 * math.sqrt(6 / (fan_in + fan_out)))
    assert_normal(init.xavier_normal_(w).value, 0, math.sqrt(2 / (fan_in + fan_out)))


def test_plain_distributions():
    w = weight(100, 100)
    assert_uniform(init.uniform_(w).value, 1.0, low=0.0)
    assert_uniform(init.uniform_(w, 2.0, 3.0).value, 3.0, low=2.0)
    assert_normal(init.normal_(w).value, 0, 1)
    assert_normal(init.normal_(w, 3.0, 0.5).value, 3.0, 0.5)
    assert (init.constant_(w, 0.3).value == np.float32(0.3)).all()
    assert (init.ones_(w).value == 1).all()
    assert (init.zeros_(w).value == 0).all()
    assert init.normal_(weight(3), std=0.0).value.tolist() == [0, 0, 0]


@pytest.mark.parametrize("layer", [lambda: nn.Linear(300, 200), lambda: nn.Conv2d(12, 200, 5)])
def test_layers_start_as_in_pytorch(layer):
    layer = layer()
    bound = 1 / math.sqrt(300)
    assert_uniform(layer.weight.value, bound)
    b = layer.bias.value
    assert (np.abs(b) <= bound).all() and b.std() == pytest.approx(bound / math.sqrt(3), rel=0.2)


def test_float32_and_float64_layers_start_alike():
    tg.manual_seed(5)
    a = nn.Linear(4, 3)
    tg.manual_seed(5)
    b = nn.Linear(4, 3, dtype="float64")
    np.testing.assert_allclose(a.weight.value, b.weight.value, rtol=1e-6)


def test_generators():
    a, b, c = weight(50), weight(50), weight(50)
    before = tg.random.default_generator.stream
    init.uniform_(a, generator=Generator(seed=3))
    init.uniform_(b, generator=Generator(seed=3))
    init.uniform_(c, generator=Generator(seed=4))
    assert (a.value == b.value).all() and not (a.value == c.value).any()
    assert tg.random.default_generator.stream == before
    init.normal_(a)
    init.normal_(b)
    assert not (a.value == b.value).any(), "each call draws anew"
    tg.manual_seed(11)
    init.normal_(c)
    assert (a.value == c.value).all(), "the default generator is the one that manual_seed seeds"


@pytest.mark.parametrize(
    ("name", "gain"),
    [
        ("linear", 1),
        ("conv2d", 1),
        ("sigmoid", 1),
        ("tanh", 5 / 3),
        ("relu", 2**0.5),
        ("selu", 0.75),
    ],
)
def test_gains(name, gain):
    assert init.calculate_gain(name) == pytest.approx(gain, rel=1e-15)


def test_the_gain_of_leaky_relu():
    assert init.calculate_gain("leaky_relu") == pytest.approx((2 / 1.0001) ** 0.5, rel=1e-15)
    assert init.calculate_gain("leaky_relu", 3.0) == pytest.approx(0.2**0.5, rel=1e-15)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda w: init.kaiming_uniform_(w, nonlinearity="rel"), ArgumentError, "mean 'relu'?"),
        (
            lambda w: init.kaiming_normal_(w, nonlinearity="zzz"),
            ArgumentError,
            "'linear', 'conv2d'",
        ),
        (lambda w: init.kaiming_normal_(w, mode="fan_inn"), ArgumentError, "did you mean 'fan_in'"),
        (lambda w: init.kaiming_uniform_(weight(3)), ShapeError, "at least two axes"),
        (lambda w: init.xavier_normal_(weight()), ShapeError, "at least two axes"),
        (lambda w: init.xavier_uniform_(weight(0, 3)), ShapeError, "one element"),
        (lambda w: init.uniform_(w, 1.0, 0.0), ArgumentError, "uniform_: b"),
        (lambda w: init.uniform_(w, 0.0, float("inf")), ArgumentError, "finite"),
        (lambda w: init.normal_(w, 0.0, -1.0), ArgumentError, "normal_: std"),
        (lambda w: init.normal_(w, "a"), ArgumentError, "normal_: mean"),
        (lambda w: init.uniform_(w, generator=3), ArgumentError, "generator"),
        (lambda w: init.zeros_(np.ones(3)), ArgumentError, "a Parameter"),
        (lambda w: init.zeros_(tg.relu(w)), ArgumentError, "leaf"),
        (lambda w: init.uniform_(tg.tensor([1, 2])), DtypeError, "float"),
    ],
)
def test_refusals_change_nothing(call, error, words):
    w = weight(4, 4)
    with pytest.raises(error, match=words):
        call(w)
    assert (w.value == 0).all()
