"""Mistakes in ops on single elements: factors, masks, branches, state."""

import numpy as np

from tests.testing.mutants import Mutant, with_first, with_input


def remembered(call):
    """A running sum in the op: right the first time."""
    total = call.op.__dict__.setdefault("total", {})
    total[0] = total.get(0, 0) + call.g[0].sum()
    return with_first(call, call.g[0] + (total[0] - call.g[0].sum()))


def last_upstream(call):
    """Momentum that was left in: a tenth of the upstream gradient of the call before."""
    before = call.op.__dict__.setdefault("before", {})
    extra = before.get(call.gy.shape, np.zeros_like(call.gy))
    before[call.gy.shape] = call.gy.copy()
    return with_first(call, call.g[0] + 0.1 * extra)


def upstream_in_place(call):
    call.gy[...] = call.g[0]
    return with_first(call, call.gy)


def input_in_place(call):
    call.x[0][...] = call.g[0]
    return with_first(call, call.x[0])


def output_in_place(call):
    call.y[...] *= call.gy
    return with_first(call, call.y.copy())


def below_zero(call, wrong):
    return with_first(call, np.where(call.x[0] < 0, wrong, call.g[0]))


MUTANTS = [
    Mutant("Relu", "mask missing", "mask", lambda c: [c.gy]),
    Mutant("Relu", "mask the wrong way round", "wrong way round", lambda c: [c.gy * (c.x[0] < 0)]),
    Mutant(
        "Relu", "writes into the upstream gradient", "upstream gradient in place", upstream_in_place
    ),
    Mutant(
        "Relu", "passes a little below zero", "mask", lambda c: [np.where(c.x[0] > -0.5, c.gy, 0)]
    ),
    Mutant(
        "LeakyRelu",
        "slope squared below zero",
        "below 0|times",
        lambda c: below_zero(c, c.gy * c.op.negative_slope**2),
    ),
    Mutant(
        "LeakyRelu",
        "zero below zero",
        "zero where it must not be|all zero",
        lambda c: below_zero(c, 0.0),
    ),
    Mutant(
        "Elu",
        "alpha forgotten",
        "below 0|alpha",
        lambda c: below_zero(c, c.g[0] / (c.op.alpha or 1) * (2 - c.op.alpha)),
    ),
    Mutant("Elu", "one below zero", "mask|below 0", lambda c: below_zero(c, c.gy)),
    Mutant(
        "Sigmoid",
        "y for y * (1 - y)",
        "lacks the factor 1 - y|value was taken",
        lambda c: [c.gy * c.y],
    ),
    Mutant("Sigmoid", "not multiplied by gy", "ignores the upstream", lambda c: [c.y * (1 - c.y)]),
    Mutant("Sigmoid", "a running sum is kept", "keeps state", remembered),
    Mutant("Tanh", "1 - y for 1 - y^2", r"lacks the factor 1 \+ y", lambda c: [c.gy * (1 - c.y)]),
    Mutant("Tanh", "0.999 of it", r"0\.1 % off", lambda c: [0.999 * c.g[0]]),
    Mutant("Tanh", "a view of the upstream gradient", "as it came", lambda c: [c.gy[...]]),
    Mutant("Tanh", "writes into its output", "output of forward", output_in_place),
    Mutant("Gelu", "factor 1.001", r"0\.1 % off", lambda c: [1.001 * c.g[0]]),
    Mutant(
        "Gelu",
        "gate alone, without its slope",
        "derivative",
        lambda c: [c.gy * (c.g[0] * 0 + 1) * (c.y / np.where(c.x[0] == 0, 1, c.x[0]))],
    ),
    Mutant(
        "Softplus",
        "beta once too often",
        "beta|every element",
        lambda c: [c.g[0] * (c.op.beta if c.op.beta != 1 else 1.5)],
    ),
    Mutant("Softplus", "momentum of the call before", "keeps state", last_upstream),
    Mutant("Clip", "mask missing", "mask", lambda c: [c.gy.copy()]),
    Mutant("Neg", "sign", "wrong sign", lambda c: [c.gy.copy()]),
    Mutant("Neg", "zeros", "all zero", lambda c: [np.zeros_like(c.gy)]),
    Mutant("Abs", "always 1", "below 0|as it came", lambda c: [c.gy.copy()]),
    Mutant("Exp", "without exp", "as it came", lambda c: [c.gy.copy()]),
    Mutant("Exp", "writes into its input", "changes input 0", input_in_place),
    Mutant("Log", "x for 1 / x", "input", lambda c: [c.gy * c.x[0]]),
    Mutant("Sqrt", "factor 2 missing", "twice", lambda c: [c.gy / c.y]),
    Mutant("Dropout", "mask and scale missing", "mask|as it came", lambda c: [c.gy.copy()]),
    Mutant(
        "Add",
        "broadcast not summed",
        "wrong shape.*broadcast was not summed",
        lambda c: [c.gy, c.gy],
    ),
    Mutant("Add", "minus for the second", "wrong sign", lambda c: with_input(c, 1, -c.g[1])),
    Mutant("Sub", "sign of the second", "wrong sign", lambda c: with_input(c, 1, -c.g[1])),
    Mutant(
        "Mul",
        "inputs in the wrong order",
        "wrong order",
        lambda c: [c.g[1], c.g[0]] if c.x[0].shape == c.x[1].shape else c.g,
    ),
    Mutant("Mul", "writes into its input", "changes input 0", input_in_place),
    Mutant("Div", "sign of the divisor", "wrong sign", lambda c: with_input(c, 1, -c.g[1])),
    Mutant("Div", "divisor not squared", "factor", lambda c: with_input(c, 1, c.g[1] * c.x[1])),
    Mutant(
        "Pow",
        "exponent missing",
        "factor.*input 1|input 1.*factor",
        lambda c: with_first(c, c.g[0] / c.x[1]) if c.g[0].shape == c.gy.shape else c.g,
    ),
    Mutant("Pow", "zeros for the exponent", "all zero", lambda c: with_input(c, 1, 0 * c.g[1])),
    Mutant(
        "Maximum",
        "to both",
        "mask|as it came|also holds",
        lambda c: [c.gy, c.gy] if c.x[0].shape == c.x[1].shape else c.g,
    ),
    Mutant(
        "Minimum",
        "the other one",
        "wrong way round|mask|zero where",
        lambda c: [c.g[1], c.g[0]] if c.x[0].shape == c.x[1].shape else c.g,
    ),
    Mutant(
        "Where",
        "both branches",
        "mask|as it came",
        lambda c: [None, c.gy, c.gy] if c.x[1].shape == c.x[2].shape == c.gy.shape else c.g,
    ),
    Mutant("Cast", "zeros", "all zero", lambda c: [0 * c.gy]),
]
