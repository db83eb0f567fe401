"""Mistakes in sums, means, products of matrices, losses and normalisers."""

import numpy as np

from tests.testing.mutants import Mutant, with_first, with_input


def scaled(call, factor):
    return [None if g is None else factor * g for g in call.g]


def batch(call):
    return len(call.x[0]) if call.x[0].ndim else 1


def first_sample(g):
    """A sum over samples of which the first alone is taken."""
    return np.concatenate([g[:1], np.zeros_like(g[1:])]) if g.ndim else g


def gw_of_first_sample(call):
    rows = call.gy.reshape(-1, call.gy.shape[-1])
    x = call.x[0].reshape(-1, call.x[0].shape[-1])
    return with_input(call, 1, rows[:1].T @ x[:1])


def square_transposed(call, position):
    """Right unless the matrix is square, where the shape says nothing."""
    g = call.g[position]
    square = g.ndim == 2 and g.shape[0] == g.shape[1]
    return with_input(call, position, np.ascontiguousarray(g.T) if square else g)


def not_centred(call, axes):
    """The path through the mean is missing: gx plus what is the same along the axes."""
    gx = call.g[0]
    return with_first(call, gx + np.mean(call.gy, axis=axes, keepdims=True))


def variance_path(call, axes):
    d = call.x[0] - call.x[0].mean(axis=axes, keepdims=True)
    extra = np.mean(call.gy * d, axis=axes, keepdims=True) / (1 + d.var(axis=axes, keepdims=True))
    return with_first(call, call.g[0] + d * extra)


def features(call):
    return tuple(range(-len(call.op.normalized_shape), 0))


def channels_out(call):
    return tuple(a for a in range(call.x[0].ndim) if a != 1)


def mean_only(call, factor):
    return scaled(call, factor) if call.op.reduction == "mean" else call.g


MUTANTS = [
    Mutant("Sum", "divided by N", "too small|half", lambda c: scaled(c, 1 / max(batch(c), 1))),
    Mutant(
        "Mean",
        "not divided",
        "too large|twice",
        lambda c: scaled(c, c.x[0].size // max(c.y.size, 1)),
    ),
    Mutant(
        "Mean",
        "divided by N, not by the axis",
        "too|half|twice",
        lambda c: scaled(c, c.x[0].size / max(c.y.size, 1) / batch(c)),
    ),
    Mutant("Mean", "0.999 of it", r"0\.1 % off", lambda c: scaled(c, 0.999)),
    Mutant("Var", "factor 2 missing", "half", lambda c: scaled(c, 0.5)),
    Mutant(
        "Var",
        "divisor M for M - correction",
        "too|times|half|twice",
        lambda c: scaled(c, 1 - c.op.correction * c.y.size / c.x[0].size),
    ),
    Mutant(
        "Max",
        "to the last index",
        "order|flipped|shifted|mask|wrong way round",
        lambda c: [np.flip(c.g[0])],
    ),
    Mutant(
        "Min",
        "to every element",
        "mask",
        lambda c: [np.broadcast_to(c.g[0].sum(), c.g[0].shape) if c.y.ndim == 0 else c.g[0]],
    ),
    Mutant(
        "Logsumexp",
        "gy for every element",
        "factor|as it came|softmax",
        lambda c: [
            np.ones_like(c.g[0]) * c.gy.reshape(np.sum(c.x[0], axis=c.op.axis, keepdims=True).shape)
        ],
    ),
    Mutant(
        "Cumsum",
        "from the start",
        "backwards|flipped|transposed",
        lambda c: [np.cumsum(c.gy, axis=c.op.axis)],
    ),
    Mutant("Softmax", "without the sum", "lacks the path.*sum", lambda c: [c.gy * c.y]),
    Mutant("Softmax", "own output alone", "own output alone", lambda c: [c.gy * c.y * (1 - c.y)]),
    Mutant("LogSoftmax", "without the sum", "lacks the path", lambda c: [c.gy.copy()]),
    Mutant(
        "Linear",
        "gx of gw's order",
        "transposed",
        lambda c: with_first(c, c.gy @ c.x[1].T if c.x[1].shape[0] == c.x[1].shape[1] else c.g[0]),
    ),
    Mutant("Linear", "square gw transposed", "transposed", lambda c: square_transposed(c, 1)),
    Mutant("Linear", "gw of sample 0", "sample 0 only|first use", gw_of_first_sample),
    Mutant(
        "Linear",
        "gw divided by the batch",
        "too small|half",
        lambda c: with_input(c, 1, c.g[1] / max(c.gy.size // c.gy.shape[-1], 1)),
    ),
    Mutant(
        "Linear",
        "bias of the first row",
        "sample 0 only|first use",
        lambda c: with_input(c, 2, c.gy.reshape(-1, c.gy.shape[-1])[0]) if len(c.g) > 2 else c.g,
    ),
    Mutant("Matmul", "square gw transposed", "transposed", lambda c: square_transposed(c, 1)),
    Mutant("Matmul", "gx twice", "twice", lambda c: with_first(c, 2 * c.g[0])),
    Mutant("Matmul", "half of gw, as of a fan-out", "half", lambda c: with_input(c, 1, c.g[1] / 2)),
    Mutant("MseLoss", "factor 2 missing", "half", lambda c: scaled(c, 0.5)),
    Mutant("MseLoss", "mean not taken", "too large|twice", lambda c: mean_only(c, c.x[0].size)),
    Mutant("MseLoss", "sign of the target", "wrong sign", lambda c: with_input(c, 1, -c.g[1])),
    Mutant("HalfSquaredError", "the factor 2 of the square", "twice", lambda c: scaled(c, 2)),
    Mutant(
        "L1Loss",
        "mean over the batch alone",
        "too large|twice",
        lambda c: mean_only(c, c.x[0].size / batch(c)),
    ),
    Mutant(
        "HuberLoss",
        "delta forgotten far away",
        "far from 0|delta|large|small|wrong only",
        lambda c: [np.where(np.abs(c.x[0] - c.x[1]) > c.op.delta, 1.3 * g, g) for g in c.g],
    ),
    Mutant("BinaryCrossEntropy", "sign", "wrong sign", lambda c: with_first(c, -c.g[0])),
    Mutant(
        "BinaryCrossEntropy",
        "1 - x missing",
        "factor",
        lambda c: with_first(c, c.g[0] * (1 - c.x[0])),
    ),
    Mutant(
        "BinaryCrossEntropyWithLogits",
        "0.999 of it",
        r"0\.1 % off",
        lambda c: with_first(c, 0.999 * c.g[0]),
    ),
    Mutant(
        "BinaryCrossEntropyWithLogits",
        "without upstream",
        "ignores the upstream|times",
        lambda c: with_first(
            c,
            (1 / (1 + np.exp(-c.x[0])) - c.x[1])
            * (1 / c.x[0].size if c.op.reduction == "mean" else 1),
        ),
    ),
    Mutant(
        "SoftmaxCrossEntropy", "mean not taken", "too large|twice", lambda c: mean_only(c, batch(c))
    ),
    Mutant(
        "SoftmaxCrossEntropy",
        "the label's 1 not subtracted",
        "mask|constant|factor|lacks",
        lambda c: with_first(c, np.where(c.g[0] < 0, 0, c.g[0])),
    ),
    Mutant(
        "SoftmaxCrossEntropy",
        "sample 0 only",
        "right for index 0|all zero|indices|zero where",
        lambda c: with_first(c, first_sample(c.g[0])),
    ),
    Mutant("NllLoss", "sign", "wrong sign", lambda c: with_first(c, -c.g[0])),
    Mutant(
        "NllLoss",
        "ignored labels counted",
        "too small|times|half",
        lambda c: with_first(c, c.g[0] * 0.75) if c.op.ignore_index is not None else c.g,
    ),
    Mutant(
        "LayerNorm",
        "path through the mean",
        "lacks the path through the mean",
        lambda c: not_centred(c, features(c)),
    ),
    Mutant(
        "LayerNorm",
        "path through the variance",
        "lacks the path through the variance",
        lambda c: variance_path(c, features(c)),
    ),
    Mutant(
        "LayerNorm",
        "weight missing in gx",
        "factor.*input 1|input 1.*factor",
        lambda c: (
            with_first(c, c.g[0] / c.x[1])
            if c.op.has_weight and c.g[0].ndim == c.x[1].ndim
            else c.g
        ),
    ),
    Mutant(
        "BatchNorm",
        "path through the mean",
        "lacks the path through the mean",
        lambda c: not_centred(c, channels_out(c)) if c.op.training else c.g,
    ),
    Mutant(
        "BatchNorm",
        "path through the variance",
        "lacks the path through the variance",
        lambda c: variance_path(c, channels_out(c)) if c.op.training else c.g,
    ),
    Mutant(
        "BatchNorm",
        "bias of sample 0",
        "sample 0 only|first use",
        lambda c: (
            with_input(c, 1 + c.op.has_weight, np.sum(c.gy[:1], axis=channels_out(c)))
            if c.op.has_bias
            else c.g
        ),
    ),
]
