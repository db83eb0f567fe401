"""Averages, normalizations, dropout and embedding in naive loops.  Nothing here calls tinygraph."""

import math

import numpy as np

from tests.reference.basics import as_pair, windows


def avg_pool2d(
    x,
    kernel_size,
    stride=None,
    padding=0,
    *,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    stride = kernel_size if stride is None else stride
    at, oh, ow = windows(x, kernel_size, stride, padding, 1, ceil_mode)
    n, c, height, width = x.shape
    bottom, right = (math.inf, math.inf) if padding == "same" else as_pair(padding)
    y = np.zeros((n, c, oh, ow))
    for a, b in np.ndindex(n, c):
        for (u, v), offsets in at.items():
            image = [(h, w) for _, _, h, w in offsets if 0 <= h < height and 0 <= w < width]
            padded = [1 for _, _, h, w in offsets if h < height + bottom and w < width + right]
            total = math.fsum(x[a, b, h, w] for h, w in image)
            counted = len(padded if count_include_pad else image)
            y[a, b, u, v] = total / (divisor_override or counted)
    return y


def global_avg_pool2d(x):
    n, c = x.shape[:2]
    means = [[mean(x[a, b].ravel().tolist()) for b in range(c)] for a in range(n)]
    return np.array(means).reshape(n, c, 1, 1)


def mean(values):
    return math.fsum(values) / len(values)


def variance(values, unbiased=False):
    """The mean of squared differences from the mean; with one number less in the divisor."""
    m = mean(values)
    return math.fsum((v - m) ** 2 for v in values) / (len(values) - unbiased)


def channel(x, c):
    """All numbers of one channel, as a list."""
    return [x[index] for index in np.ndindex(x.shape) if index[1] == c]


def batch_norm(
    x,
    weight=None,
    bias=None,
    running_mean=None,
    running_var=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    y = np.zeros(x.shape)
    for c in range(x.shape[1]):
        values = channel(x, c)
        m = mean(values) if training else running_mean[c]
        v = variance(values) if training else running_var[c]
        scale = 1.0 if weight is None else weight[c]
        shift = 0.0 if bias is None else bias[c]
        for index in np.ndindex(x.shape):
            if index[1] == c:
                y[index] = (x[index] - m) / math.sqrt(v + eps) * scale + shift
    return y


def running_statistics(x, running_mean, running_var, momentum):
    """Both running statistics after one evaluation in training."""
    moved_mean, moved_var = [], []
    for c in range(x.shape[1]):
        values = channel(x, c)
        moved_mean.append((1 - momentum) * running_mean[c] + momentum * mean(values))
        moved_var.append((1 - momentum) * running_var[c] + momentum * variance(values, True))
    return moved_mean, moved_var


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    features = math.prod(as_shape(normalized_shape))
    scale = [1.0] * features if weight is None else weight.ravel().tolist()
    shift = [0.0] * features if bias is None else bias.ravel().tolist()
    y = []
    for row in x.reshape(-1, features).tolist():
        m, s = mean(row), math.sqrt(variance(row) + eps)
        y.append([(v - m) / s * a + b for v, a, b in zip(row, scale, shift, strict=True)])
    return np.array(y).reshape(x.shape)


def as_shape(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def kept_by_dropout(count, p, seed, stream=0):
    """Which of `count` elements dropout keeps: word i of Philox with key (seed, stream) decides.

    Words are counted from counter 0, and numpy increments before it generates.  The high 24 bits of
    a word, as a fraction, are the uniform number that p is compared with.
    """
    key = np.array([seed, stream], np.uint64)
    before_zero = np.array([2**64 - 1] * 4, np.uint64)
    words = np.random.Philox(key=key, counter=before_zero).random_raw(count)
    return [(word >> 40) / 2**24 >= np.float32(p) for word in words.tolist()]


def seeded_dropout(seed):
    """Dropout right after the seed was set: its mask is that of stream 0."""

    def dropout(x, p=0.5):
        kept = kept_by_dropout(x.size, p, seed)
        y = [v / (1 - p) if k else 0.0 for v, k in zip(x.ravel().tolist(), kept, strict=True)]
        return np.array(y).reshape(x.shape)

    return dropout


def embedding(indices, weight):
    rows = [weight[i].tolist() for i in indices.ravel().tolist()]
    return np.array(rows).reshape(*indices.shape, weight.shape[1])
