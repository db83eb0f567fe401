"""Activations, log-sum-exp and losses in naive loops over Python numbers, with math's functions.

Nothing here calls tinygraph.
"""

import itertools
import math

import numpy as np

from tests.reference.basics import elementwise, reduced


def leaky_relu(x, negative_slope=0.01):
    return elementwise(lambda v: v if v > 0 else negative_slope * v, x)


def prelu(x, weight):
    y = np.empty(x.shape)
    for place in itertools.product(*map(range, x.shape)):
        slope = weight.flat[place[1] if weight.size > 1 else 0]
        y[place] = x[place] if x[place] > 0 else slope * x[place]
    return y


def elu(x, alpha=1.0):
    return elementwise(lambda v: v if v > 0 else alpha * math.expm1(v), x)


def gelu(x, approximate="none"):
    def exact(v):
        return v * math.erfc(-v / math.sqrt(2)) / 2

    def by_tanh(v):
        return v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))

    return elementwise(exact if approximate == "none" else by_tanh, x)


def softplus(x, beta=1.0, threshold=20.0):
    def one(v):
        return v if beta * v > threshold else math.log1p(math.exp(beta * v)) / beta

    return elementwise(one, x)


def heaviside(x, value=1.0):
    return elementwise(lambda v: 0.0 if v < 0 else 1.0 if v > 0 else value, x)


def logsumexp(x, axis=None, keepdims=False):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    summed = {a % x.ndim for a in axes}
    kept = [1 if a in summed else n for a, n in enumerate(x.shape)]
    terms = {place: [] for place in itertools.product(*map(range, kept))}
    for place in itertools.product(*map(range, x.shape)):
        terms[tuple(0 if a in summed else i for a, i in enumerate(place))].append(float(x[place]))
    out = np.empty(kept)
    for place, values in terms.items():
        largest = max(values)
        out[place] = largest + math.log(math.fsum(math.exp(v - largest) for v in values))
    return out if keepdims else out.reshape([n for a, n in enumerate(x.shape) if a not in summed])


def nll_loss(log_probabilities, labels, weight=None, ignore_index=-100, reduction="mean"):
    losses, counted = [], 0
    weight = [1] * log_probabilities.shape[1] if weight is None else weight.tolist()
    for place in itertools.product(*map(range, labels.shape)):
        label = int(labels[place])
        if label == ignore_index:
            losses.append(0.0)
            continue
        losses.append(-weight[label] * float(log_probabilities[place[0], label, *place[1:]]))
        counted += weight[label]
    return reduced(losses, labels.shape, reduction, counted)


def pairwise(loss, x, y, reduction):
    """A loss of pairs of numbers, reduced."""
    losses = [loss(p, q) for p, q in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)]
    return reduced(losses, x.shape, reduction)


def binary_cross_entropy(x, y, weight=None, reduction="mean"):
    def limited_log(p):
        return max(math.log(p), -100.0) if p else -100.0

    def one(p, t):
        return -(t * limited_log(p) + (1 - t) * limited_log(1 - p))

    return weighted_pairs(lambda p, t, w: w * one(p, t), x, y, weight, reduction)


def weighted_pairs(loss, x, y, weight, reduction):
    """A loss of triples: two numbers and a weight, 1 where there is none."""
    weights = np.broadcast_to(1.0 if weight is None else weight, x.shape)
    triples = zip(*(a.ravel().tolist() for a in (x, y, weights)), strict=True)
    return reduced([loss(*triple) for triple in triples], x.shape, reduction)


def binary_cross_entropy_with_logits(x, y, weight=None, reduction="mean", pos_weight=None):
    def one(v, t, w):
        yes, no = 1 / (1 + math.exp(-v)), 1 / (1 + math.exp(v))
        return -(w * t * math.log(yes) + (1 - t) * math.log(no))

    losses = weighted_pairs(one, x, y, pos_weight, "none")
    return weighted_pairs(lambda loss, _, w: w * loss, losses, losses, weight, reduction)


def half_squared_error(x, y, reduction="sum"):
    return pairwise(lambda p, q: (p - q) ** 2 / 2, x, y, reduction)


def l1_loss(x, y, reduction="mean"):
    return pairwise(lambda p, q: abs(p - q), x, y, reduction)


def huber_loss(x, y, reduction="mean", delta=1.0):
    def one(p, q):
        d = abs(p - q)
        return d * d / 2 if d <= delta else delta * (d - delta / 2)

    return pairwise(one, x, y, reduction)


def smooth_l1_loss(x, y, reduction="mean", beta=1.0):
    def one(p, q):
        d = abs(p - q)
        return d * d / 2 / beta if d < beta else d - beta / 2

    return pairwise(one, x, y, reduction)
