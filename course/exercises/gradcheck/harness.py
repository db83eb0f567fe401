"""What tries the learner's functions: it makes functions and ops, and draws problems.

It stands behind the learner's file, in his process.  No name in it says of an op whether its
backward is right, and each is made anew when it is asked for: ops.py, in the other process, knows.
"""

import numpy as tg_np

from tinygraph.testing.drawing import search as tg_search

tg_FUNCTIONS = {
    "x * x": lambda x: x * x,
    "x ** 3": lambda x: x**3,
    "|x|": abs,
    "5": lambda x: 5.0,
    "1 / x": lambda x: 1 / x,
}

tg_FORWARDS = {
    "x * x": lambda x: x * x,
    "a * b": lambda a, b: a * b,
    "|x|": tg_np.abs,
    "x": lambda x: x.copy(),
    "b cut off at -|a| and |a|": lambda a, b: tg_np.clip(b, -abs(a), abs(a)),
    "100 * x ** 3": lambda x: 100 * x**3,
    "x @ w": lambda x, w: x @ w,
    "sum of x": lambda x: x.sum(),
}


class tg_Op:
    """A forward, and a backward where there is one."""

    def __init__(self, forward, backward=None):
        self.forward, self.backward = forward, backward


def tg_slope(name, x, h):
    """`slope` of a function by name."""
    return slope(tg_FUNCTIONS[name], x, h)


def tg_numeric(name, arrays, upstream):
    """`numeric` of an op without a backward."""
    return numeric(tg_Op(tg_FORWARDS[name]), arrays, upstream)


def tg_worst(number, *arrays):
    """`worst` of a layer."""
    return worst(tg_layer(number), arrays)


def tg_agrees(number, *problem):
    """`agrees` of a layer."""
    return agrees(tg_layer(number), problem)


def tg_forward(number, *arrays):
    """What a layer computes."""
    return tg_layer(number).forward(*arrays)


def tg_backward(number, gy, *arrays):
    """Its gradients."""
    return list(tg_layer(number).backward(gy, *arrays))


def tg_problems(count):
    """Some problems, the same at every run."""
    drawn = []
    error = tg_search(problems(), drawn.append, count).error
    if error is not None:
        raise error
    return drawn


def tg_layer(number):
    """A layer of x (N, I), w (O, I) and b (O,) by its number; ops.py has them in the same order."""
    np = tg_np

    def linear(x, w, b):
        return x @ w.T + b

    def linear_back(gz, x, w, b):
        return gz @ w, gz.T @ x, gz.sum(0)

    def tanh(x, w, b):
        return np.tanh(linear(x, w, b))

    def relu(x, w, b):
        return linear(np.maximum(x, 0), w, b)

    def absolute(x, w, b):
        return linear(x, np.abs(w), b)

    def exponentials(z):
        return np.exp(z - z.max(1, keepdims=True))

    def softmax(x, w, b):
        e = exponentials(linear(x, w, b))
        return e / e.sum(1, keepdims=True)

    def log_softmax(x, w, b):
        return 1e8 * np.log(softmax(x, w, b))

    def distance(x, w, b):
        return ((x[:, None] - w) ** 2).sum(2) / 2 + b  # (N, O)

    def centred(x, w, b):
        z = linear(x, w, b)
        return z - z.mean(0)

    def mean(x, w, b):
        return x @ w.T / w.shape[1] + b

    def largest(x, w, b):
        return (x[:, None] * w).max(2) + b  # (N, O)

    def relu_back(gy, x, w, b, below):
        gx, gw, gb = linear_back(gy, np.maximum(x, 0), w, b)
        return gx * np.where(x > 0, 1, below), gw, gb

    def absolute_back(gy, x, w, b, sign):
        gx, gw, gb = linear_back(gy, x, np.abs(w), b)
        return gx, gw * sign, gb

    def softmax_back(gy, x, w, b, share):
        y = softmax(x, w, b)
        return linear_back(y * (gy - share * (gy * y).sum(1, keepdims=True)), x, w, b)

    def log_softmax_back(gy, x, w, b):
        y = softmax(x, w, b)
        return linear_back(1e8 * (gy - y * gy.sum(1, keepdims=True)), x, w, b)

    def distance_back(gy, x, w, b):
        each = gy[:, :, None] * (x[:, None] - w)  # (N, O, I)
        return each.sum(1), -each.sum(0), gy.sum(0)

    def mean_back(gy, x, w, b, count):
        return (*linear_back(gy / count, x, w, b)[:2], gy.sum(0))

    def largest_back(gy, x, w, b):
        products = x[:, None] * w  # (N, O, I)
        won = np.arange(x.shape[1]) == products.argmax(2)[:, :, None]
        each = gy[:, :, None] * won
        return (each * w).sum(1), (each * x[:, None]).sum(0), gy.sum(0)

    def first(x, w, b):
        y = x @ w.T
        y[0] += b
        return y

    def in_place(gy, x, w, b):
        gy *= 1 - tanh(x, w, b) ** 2
        return linear_back(gy, x, w, b)

    def with_bias(change):
        return lambda *given: (*linear_back(*given)[:2], change(linear_back(*given), *given))

    pairs = [
        (softmax, lambda *given: softmax_back(*given, share=1)),
        (linear, lambda gy, *given: linear_back(np.ones_like(gy), *given)),
        (tanh, in_place),
        (linear, with_bias(lambda right, gy, *arrays: gy[0])),
        (centred, lambda gy, *given: linear_back(gy - gy.mean(0), *given)),
        (mean, lambda gy, x, w, b: mean_back(gy, x, w, b, w.shape[0])),
        (relu, lambda *given: relu_back(*given, below=0)),
        (relu, lambda *given: relu_back(*given, below=1)),
        (absolute, lambda gy, x, w, b: absolute_back(gy, x, w, b, np.sign(w))),
        (linear, linear_back),
        (largest, linear_back),
        (tanh, lambda gy, *given: linear_back(gy * (1 - linear(*given) ** 2), *given)),
        (distance, distance_back),
        (relu, lambda *given: relu_back(*given, below=0.01)),
        (linear, with_bias(lambda right, *given: right[2][None])),
        (log_softmax, log_softmax_back),
        (absolute, lambda gy, x, w, b: absolute_back(gy, x, w, b, w / np.sqrt(w) ** 2)),
        (mean, lambda gy, x, w, b: mean_back(gy, x, w, b, w.shape[1])),
        (linear, lambda gy, x, w, b: (gy @ w, (x.T @ gy).reshape(w.shape), gy.sum(0))),
        (tanh, lambda gy, *given: linear_back(gy * (1 - tanh(*given) ** 2), *given)),
        (softmax, lambda *given: softmax_back(*given, share=0)),
        (largest, largest_back),
        (first, lambda gy, x, w, b: (gy @ w, gy.T @ x, gy[0])),
    ]
    return tg_Op(*pairs[number])
