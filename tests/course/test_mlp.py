"""Exercise 3: it is the graph's backward; answers in other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.framework.mlp import Framework, outputs
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.mlp.steps import xor

MLP = find("mlp")
SOLUTION = module(MLP.solution + MLP.harness)

LOOPS = """
    N, H, O = len(x), len(W1), len(W2)
    h, o = np.zeros((N, H), x.dtype), np.zeros((N, O), x.dtype)
    for n in range(N):
        for j in range(H):
            z = {bias}
            for i in range(x.shape[1]):
                z += W1[j, i] * x[n, i]
            h[n, j] = 1 / (1 + np.exp(-z))
        for k in range(O):
            z = b2[k]
            for j in range(H):
                z += W2[k, j] * {below}
            o[n, k] = {output}
    return h, o
"""
GOOD = {"bias": "b1[j]", "below": "h[n, j]", "output": "sigmoid(z)"}
DELTAS = """
    N, O, H = len(o), o.shape[1], h.shape[1]
    below, above = np.zeros((N, H)), np.zeros((N, O))
    for n in range(N):
        for k in range(O):
            above[n, k] = {above}
        for j in range(H):
            back = 0.0
            for k in range(O):
                back += {back}
            below[n, j] = back * {slope}
    return below, above
"""
SLOPES = {
    "above": "(o[n, k] - y[n, k]) * o[n, k] * (1 - o[n, k])",
    "back": "above[n, k] * W2[k, j]",
    "slope": "(h[n, j] - h[n, j] ** 2)",
}
SUMS = """
    grads = [np.zeros((d1.shape[1], x.shape[1])), np.zeros(d1.shape[1]),
             np.zeros((d2.shape[1], h.shape[1])), np.zeros(d2.shape[1])]
    for n in range(len(x)):
        grads[0] {add} np.outer(d1[n], x[n]){share}
        grads[1] {add} d1[n]{share}
        grads[2] {add} np.outer(d2[n], h[n]){share}
        grads[3] {add} d2[n]{share}
    return grads
"""
STEP = """
    h, o = forward(x, W1, b1, W2, b2)
    d1, d2 = deltas(h, o, y, W2)
    old = [W1, b1, W2, b2]
    new = []
    for value, slope in zip(old, gradients(x, h, d1, d2)):
        new.append({new})
    return {give}
"""
RIGHT = {
    "loops over everything": ("forward", LOOPS.format(**GOOD)),
    "by einsum": (
        "forward",
        """
    h = 1.0 / (1.0 + np.exp(-(np.einsum('ni,hi->nh', x, W1) + b1[None, :])))
    o = 0.5 * (1 + np.tanh((np.einsum('nh,oh->no', h, W2) + b2[None, :]) / 2))
    return [h, o]
""",
    ),
    "a column of ones for the bias": (
        "forward",
        """
    def layer(inputs, W, b):
        wide = np.concatenate([inputs, np.ones((len(inputs), 1), inputs.dtype)], axis=1)
        return sigmoid(wide @ np.concatenate([W, b[:, None]], axis=1).T)
    hidden = layer(x, W1, b1)
    return hidden, layer(hidden, W2, b2)
""",
    ),
    "deltas by loops": ("deltas", DELTAS.format(**SLOPES)),
    "deltas by transposed products": (
        "deltas",
        """
    error = o - y
    last = error * (o - np.square(o))
    first = np.dot(W2.T, last.T).T * (h * (1.0 - h))
    return (first, last)
""",
    ),
    "outer products added up": ("gradients", SUMS.format(add="+=", share="")),
    "gradients by einsum": (
        "gradients",
        """
    def layer(below, delta):
        return np.einsum('no,ni->oi', delta, below), np.ones(len(delta)) @ delta
    return *layer(x, d1), *layer(h, d2)
""",
    ),
    "a list of new ones": ("step", STEP.format(new="value - lr * slope", give="new")),
    "copies changed in place": (
        "step",
        """
    h, o = forward(x, W1, b1, W2, b2)
    grads = gradients(x, h, *deltas(h, o, y, W2))
    W1, b1, W2, b2 = (p.copy() for p in (W1, b1, W2, b2))
    for p, g in zip((W1, b1, W2, b2), grads, strict=True):
        p -= lr * g
    return W1, b1, W2, b2
""",
    ),
}
WRONG = {  # function, body, name of the mistake
    "loops without the hidden bias": (
        "forward",
        LOOPS.format(**{**GOOD, "bias": "0.0"}),
        "no-bias",
    ),
    "loops with a linear output": (
        "forward",
        LOOPS.format(**{**GOOD, "output": "z"}),
        "output-is-linear",
    ),
    "weights the other way round, by dot": (
        "forward",
        """
    h = sigmoid(np.dot(x, W1) + b1[None])
    o = sigmoid(np.dot(h, W2) + b2[None])
    return h, o
""",
        "weights-not-transposed",
    ),
    "ReLU by where": (
        "forward",
        """
    z = x @ W1.T + b1
    h = np.where(z > 0, z, np.zeros_like(z))
    return h, sigmoid(np.dot(h, W2.T) + b2)
""",
        "another-bend",
    ),
    "a slope from a function of h": (
        "deltas",
        """
    def slope(z):
        s = 1 / (1 + np.exp(-z))
        return s - s * s
    d2 = (o - y) * slope(o)
    return np.einsum('no,oh->nh', d2, W2) * slope(h), d2
""",
        "slope-of-the-value",
    ),
    "loops without the output's slope": (
        "deltas",
        DELTAS.format(**{**SLOPES, "above": "o[n, k] - y[n, k]"}),
        "no-slope-at-the-output",
    ),
    "loops that pass the error down": (
        "deltas",
        DELTAS.format(**{**SLOPES, "back": "(o[n, k] - y[n, k]) * W2[k, j]"}),
        "error-passed-down",
    ),
    "loops without weights": (
        "deltas",
        DELTAS.format(**{**SLOPES, "back": "above[n, k]"}),
        "not-through-the-weights",
    ),
    "target minus output": (
        "deltas",
        DELTAS.format(**{**SLOPES, "above": "(y[n, k] - o[n, k]) * (o[n, k] - o[n, k] ** 2)"}),
        "sign",
    ),
    "a loop that keeps the last sample": (
        "gradients",
        SUMS.format(add="=", share=""),
        "one-sample",
    ),
    "a loop that takes the mean": (
        "gradients",
        SUMS.format(add="+=", share=" / len(x)"),
        "mean-for-sum-of-samples",
    ),
    "columns for rows": (
        "gradients",
        """
    return (np.einsum('ni,nh->ih', x, d1), np.sum(d1, 0), np.einsum('nh,no->ho', h, d2),
            np.sum(d2, 0))
""",
        "transposed-gradient",
    ),
    "uphill": ("step", STEP.format(new="value + lr * slope", give="new"), "climbs"),
    "the rate forgotten": ("step", STEP.format(new="value - slope", give="new"), "no-rate"),
    "weights alone": (
        "step",
        STEP.format(new="value - lr * slope", give="[new[0], b1, new[2], b2]"),
        "biases-stay",
    ),
    "the last layer steps, then d1 is computed": (
        "step",
        """
    h, o = forward(x, W1, b1, W2, b2)
    d2 = (o - y) * o * (1 - o)
    W2 = W2 - lr * d2.T @ h
    b2 = b2 - lr * d2.sum(0)
    d1 = d2 @ W2 * h * (1 - h)
    return W1 - lr * d1.T @ x, b1 - lr * d1.sum(0), W2, b2
""",
        "last-layer-first",
    ),
    "the caller's arrays": (
        "step",
        """
    h, o = forward(x, W1, b1, W2, b2)
    d1, d2 = deltas(h, o, y, W2)
    for p, g in zip((W1, b1, W2, b2), gradients(x, h, d1, d2)):
        p -= lr * g
    return W1, b1, W2, b2
""",
        "writes-into-arguments",
    ),
}
OUTSIDE = {
    "hidden units halved": (
        "forward",
        "\n    h = sigmoid(x @ W1.T + b1) / 2\n    return h, sigmoid(h @ W2.T + b2)\n",
    ),
    "a steeper sigmoid": (
        "forward",
        "\n    h = sigmoid(3 * (x @ W1.T + b1))\n    return h, sigmoid(3 * (h @ W2.T + b2))\n",
    ),
    "size of the error lost": (
        "deltas",
        "\n    d2 = np.sign(o - y) * o * (1 - o)\n    return d2 @ W2 * h * (1 - h), d2\n",
    ),
    "weights without their sign": (
        "deltas",
        "\n    d2 = (o - y) * o * (1 - o)\n    return d2 @ abs(W2) * h * (1 - h), d2\n",
    ),
    "largest in the place of the sum": (
        "gradients",
        "\n    return d1.T @ x, d1.max(axis=0), d2.T @ h, d2.max(axis=0)\n",
    ),
    "half of the rate below": (
        "step",
        """
    h, o = forward(x, W1, b1, W2, b2)
    d1, d2 = deltas(h, o, y, W2)
    a, b, c, d = gradients(x, h, d1, d2)
    return W1 - lr / 2 * a, b1 - lr / 2 * b, W2 - lr * c, b2 - lr * d
""",
    ),
}


def with_body(function, body):
    """The solution with another body of one function."""
    text = MLP.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    assert of(MLP, with_body(*RIGHT[style]), tmp_path).ok


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(MLP, with_body(function, body), tmp_path).failure
    assert failure.mistake.name == name and failure.sure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_mistakes_outside_of_the_catalogue_are_never_named_surely(style, tmp_path):
    failure = of(MLP, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None
    assert failure.mistake is None or not failure.sure


def drawn(seed):
    """Samples, targets and parameters of random sizes."""
    draw = np.random.default_rng(seed)
    n, i, h, o = draw.integers(1, 5, 4)
    shapes = (n, i), (n, o), (h, i), (h,), (o, h), (o,)
    return [draw.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_the_backward_of_the_graph(seed):
    x, y, *values = drawn(seed)
    parameters = [tg.Parameter(value) for value in values]
    h, o = outputs(tg.Tensor(x), *parameters)
    tg.half_squared_error(o, y).backward()
    found = SOLUTION.forward(x, *values)
    np.testing.assert_allclose(found[0], h.value, rtol=1e-12)
    np.testing.assert_allclose(found[1], o.value, rtol=1e-12)
    deltas = SOLUTION.deltas(*found, y, values[2])
    for parameter, gradient in zip(
        parameters, SOLUTION.gradients(x, found[0], *deltas), strict=True
    ):
        np.testing.assert_allclose(gradient, parameter.grad, rtol=1e-9, atol=1e-12)
    stepped = Framework().call("step", x, y, *values, 0.5)
    for ours, graphs in zip(SOLUTION.step(x, y, *values, 0.5), stepped, strict=True):
        np.testing.assert_allclose(ours, graphs, rtol=1e-12)


def test_the_step_by_hand_is_that_of_the_page():
    arrays = [np.array(a, float) for a in ([[1, 2]], [[1]], [[2, -1]], [0], [[4]], [-2])]
    W1, b1, W2, b2 = SOLUTION.step(*arrays, 8.0)
    assert (W1.tolist(), b1.tolist(), W2.tolist(), b2.tolist()) == ([[3, 1]], [1], [[4.5]], [-1])
    h, o = SOLUTION.forward(arrays[0], W1, b1, W2, b2)
    assert f"h = s(3 + 2 + 1) = {h.item():.4f}" in MLP.text
    assert f"o = s({4.5 * h.item():.4f} - 1) = {o.item():.4f}" in MLP.text


def test_xor_is_learnt_with_room_to_spare():
    """Of 30 seeds all; those of the check are on their side long before the last step."""
    for seed in range(30):
        _, x, y, *parameters, lr = xor(seed)
        for _ in range(150):
            parameters = SOLUTION.step(x, y, *parameters, lr)
        assert abs(SOLUTION.forward(x, *parameters)[1] - y).max() < 0.3, seed
