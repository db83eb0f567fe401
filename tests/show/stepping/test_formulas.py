"""The lines of docstrings that a page shows, and which walk each belongs to."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import ops  # noqa: F401 - all ops are registered
from tinygraph.op import registry
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
        ("Relu", 0, "y  = x   where x > 0, else 0        (NaN stays NaN)"),
    ],
)
def test_formulas_of_ops(op, part, expected):
    assert parts(op)[part] == expected.split(" | ")


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
    lines = [text for line in rules(tg.optim.Adam)["lines"] for text, _ in line]
    assert lines[0] == "g  = grad + weight_decay * value" and "sqrt" in lines[-1]
    assert all(rules(cls)["lines"] for cls in vars(tg.optim).values() if _is_rule(cls))


def _is_rule(thing):
    return isinstance(thing, type) and issubclass(thing, tg.optim.Optimizer) and bool(thing.kernel)
