"""The lines of docstrings that a page shows, and which walk each belongs to."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import ops  # noqa: F401 - all ops are registered
from tinygraph.engine.op import registry
from tinygraph.ops.elementwise.gelu import Gelu
from tinygraph.ops.losses.softmax_cross_entropy import SoftmaxCrossEntropy
from tinygraph.ops.normalization.batch_norm import BatchNorm
from tinygraph.ops.recurrent.rnn_layer import ReluLayer
from tinygraph.show.stepping.formulas import formulas, rules


def parts(name):
    """The formulas of one of our ops: those of forward, and those of backward."""
    (cls,) = [
        c
        for key, c in registry.items()
        if key.startswith("tinygraph.ops") and key.endswith(f".{name}")
    ]
    pieces = [piece for line in formulas(cls)["lines"] for piece in line]
    return [[text.strip() for text, part in pieces if part == p] for p in ("forward", "backward")]


@pytest.mark.parametrize(
    ("op", "part", "expected"),
    [
        ("Linear", 0, "y  = x @ w^T + b"),
        ("Linear", 1, "gx = gy @ w | gw = gy^T @ x | gb = sum of gy over all but the last axis"),
        ("Add", 0, "z = x + y"),
        ("Add", 1, "gx = gz | gy = gz"),
        ("Mul", 1, "gx = gz * y | gy = gz * x"),
        ("Pow", 0, "z = x ** y"),
        (
            "Pow",
            1,
            "gx = gz * y * x ** (y - 1) | gy = gz * z * log(x) | "
            "0 where y = 0 | 0 where x = 0 and y >= 0",
        ),
        ("Exp", 1, "gx = gy * y"),
        ("Softmax", 0, "y = exp(x - m) / s"),
        (
            "Conv2d",
            1,
            "gw = sum over n of gy @ cols^T | gcols = w^T @ gy, | "
            "gx = col2im(gcols) | gb = sum of gy",
        ),
        ("Relu", 0, "y  = x   where x > 0, else 0"),
        ("Maximum", 0, "z = x where x >= y, else y"),
        ("Sum", 0, "y[k]     = sum over r in R of x[k, r]"),
        (
            "LayerNorm",
            1,
            "h  = gy * weight | gx = (h - mean of h - (x - m) / s^2 * mean of h * "
            "(x - m)) / s | gw = sum of gy * (x - m) / s | gb = sum of gy",
        ),
        (
            "ConvTranspose2d",
            0,
            "y[n, o, u*s + i*d - p, v*s + j*d - p] += sum over c of w[c, o, i, j] * x[n, c, u, v]",
        ),
    ],
)
def test_formulas_of_ops(op, part, expected):
    assert parts(op)[part] == expected.split(" | ")


def lines_of(op, part):
    """What an op with its settings highlights, line by line."""
    rows = [[text.strip() for text, p in line if p == part] for line in formulas(op)["lines"]]
    return [row for row in rows if row]


@pytest.mark.parametrize("training", [True, False])
def test_a_row_holds_for_the_settings_that_it_names(training):
    op = BatchNorm(training, 0.1, 1e-5, True, True, True)
    first = ["m = sum of x / M", "m = running_mean"][not training]
    assert lines_of(op, "forward")[0][0] == first
    (gx,) = [row[0] for row in lines_of(op, "backward") if row[0].startswith("gx")]
    assert gx.endswith("M)") == training


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_row_that_names_a_number_holds_where_that_is_not_zero(share):
    rows = lines_of(SoftmaxCrossEntropy("mean", None, share), "backward")
    smoothed = [row[0] for row in rows if "s / C" in row[0]]
    assert bool(smoothed) == bool(share) and any("onehot(t[n]))" in row[0] for row in rows)


def test_a_row_holds_for_the_value_that_it_names():
    assert [row[0] for row in lines_of(Gelu("tanh"), "forward")[1:]] == [
        "g = (1 + tanh(u)) / 2",
        "u = sqrt(2 / pi) * (x + 0.044715 * x**3)",
    ]
    assert lines_of(ReluLayer(), "backward") == [["ga = gh' where h' != 0, else 0"]]


def test_every_op_of_ours_has_a_formula():
    lacking = [
        cls.__name__
        for key, cls in registry.items()
        if key.startswith("tinygraph.ops")
        and not any(part for line in formulas(cls)["lines"] for _, part in line)
    ]
    assert lacking == []


class Cube(tg.Op):
    """The cube of each number.

    y  = x ** 3
    gx = 3 * gy * x ** 2
    """

    def forward(self, mem, x):
        return np.power(x, 3), x

    def backward(self, mem, grad, saved, needs):
        return (3 * grad * saved**2,)


class Plain(Cube):
    def forward(self, mem, x):
        return super().forward(mem, x)


def test_an_op_of_a_users_states_them_in_its_class():
    assert formulas(Cube)["title"] == "The cube of each number."
    assert [part for line in formulas(Cube)["lines"] for _, part in line] == ["forward", "backward"]


def test_an_op_without_any_has_a_title_of_its_module():
    assert formulas(Plain)["lines"] == []


def test_the_rule_of_an_optimiser():
    lines = [line[0][0] for line in rules(tg.optim.Adam)["lines"]]
    assert lines[0] == "g  = grad + weight_decay * value" and "sqrt" in lines[-1]
    assert all(rules(cls)["lines"] for cls in vars(tg.optim).values() if _is_rule(cls))


def _is_rule(thing):
    return isinstance(thing, type) and issubclass(thing, tg.optim.Optimizer) and bool(thing.kernel)
