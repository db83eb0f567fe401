"""Exercise 2: loss, gradient and least squares; answers in other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph.testing.drawing import search
from tinygraph_course.checking.rules import broken_rules
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.line.steps import INPUTS, SETS, sets

LINE = find("line")
SOLUTION = module(LINE.solution)


def with_body(function, body):
    """The solution with another body of one function."""
    text = LINE.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


LOOPS = """
    N, F = x.shape
    g = np.zeros(F + 1)
    for n in range({samples}):
        error = {error}
        g[0] += error
        for f in range(F):
            g[f + 1] += {each}
    return g{scale}
"""
LOOP = {
    "samples": "N",
    "error": "w[0] + sum(w[f + 1] * x[n, f] for f in range(F)) - y[n]",
    "each": "error * x[n, f]",
    "scale": "",
}
WHILE = """
    new, done = np.array(w), 0
    while done {until} steps:
        g = gradient(x, y, {at})
        new {change} lr * g
        done += 1
    return new
"""
DOWN = {"until": "<", "at": "new", "change": "-="}
ONES = """
    ones = np.ones((len(x), 1))
    A = {columns}
    return {solved}
"""
COLUMNS = {"columns": "np.hstack([ones, x])", "solved": "np.linalg.pinv(A) @ y"}
RIGHT = {
    "predictions one by one": (
        "predict",
        "\n    return np.array([w[0] + sum(a * b for a, b in zip(w[1:], row)) for row in x])\n",
    ),
    "a column of ones": ("predict", "\n    return np.c_[np.ones(len(x)), x].dot(w)\n"),
    "a product with itself": (
        "loss",
        "\n    difference = y - predict(x, w)\n    return 0.5 * difference @ difference\n",
    ),
    "a loop": (
        "loss",
        """
    total = 0
    for p, wanted in zip(predict(x, w), y):
        total += (p - wanted) ** 2 / 2
    return total
""",
    ),
    "a gradient by loops": ("gradient", LOOPS.format(**LOOP)),
    "a gradient by differences": (
        "gradient",
        """
    g = []
    for e in np.eye(len(w)):
        g.append((loss(x, y, w + e) - loss(x, y, w - e)) / 2)
    return np.array(g)
""",
    ),
    "a while": ("descend", WHILE.format(**DOWN)),
    "by itself": (
        "descend",
        "\n    if steps == 0:\n        return w\n"
        "    return descend(x, y, w - lr * gradient(x, y, w), lr, steps - 1)\n",
    ),
    "a pseudoinverse": ("closed_form", ONES.format(**COLUMNS)),
    "normal equations by lstsq": (
        "closed_form",
        ONES.format(**COLUMNS | {"solved": "np.linalg.lstsq(A.T @ A, A.T @ y, rcond=1e-10)[0]"}),
    ),
    "a spectral norm": (
        "lr_limit",
        ONES.format(**COLUMNS | {"solved": "2 / np.linalg.norm(A, 2) ** 2"}),
    ),
}
WRONG = {  # function, body, name of the mistake
    "weights as a column": (
        "predict",
        "\n    return w[0] + np.dot(x, w[1:].reshape(-1, 1))\n",
        "a-column",
    ),
    "a product without a sum": (
        "predict",
        "\n    return np.multiply(x, w[1:]) + w[0]\n",
        "not-added-up",
    ),
    "added up along the other axis": (
        "predict",
        "\n    return np.sum(x * w[1:], 0) + w[0]\n",
        "wrong-axis",
    ),
    "x with all weights": ("predict", "\n    return np.dot(x, w)\n", "one-input-too-few"),
    "y as a column": (
        "loss",
        "\n    return 0.5 * ((predict(x, w) - y.reshape(-1, 1)) ** 2).sum()\n",
        "broadcasting",
    ),
    "an average of halves": (
        "loss",
        "\n    return sum((p - q) ** 2 / 2 for p, q in zip(predict(x, w), y)) / len(y)\n",
        "mean",
    ),
    "no half": ("loss", "\n    d = predict(x, w) - y\n    return d.dot(d)\n", "half-missing"),
    "the square of a sum": (
        "loss",
        "\n    return 0.5 * sum(predict(x, w) - y) ** 2\n",
        "squared-too-late",
    ),
    "a two too much": ("gradient", LOOPS.format(**LOOP | {"scale": " * 2"}), "factor-two"),
    "divided by N": ("gradient", LOOPS.format(**LOOP | {"scale": " / N"}), "gradient-of-the-mean"),
    "a half too much": (
        "gradient",
        LOOPS.format(**LOOP | {"scale": " / 2"}),
        "half-kept",
    ),
    "y minus p": (
        "gradient",
        "\n    A = np.c_[np.ones(len(x)), x]\n    return A.T @ (y - A @ w)\n",
        "sign",
    ),
    "the derivative without its inside": (
        "gradient",
        LOOPS.format(**LOOP | {"each": "error"}),
        "input-missing",
    ),
    "no entry for the bias": (
        "gradient",
        "\n    return x.T.dot(predict(x, w) - y)\n",
        "no-gradient-of-the-bias",
    ),
    "one sample": ("gradient", LOOPS.format(**LOOP | {"samples": "1"}), "first-sample-alone"),
    "uphill": ("descend", WHILE.format(**DOWN | {"change": "+="}), "climbs"),
    "always at the first weights": ("descend", WHILE.format(**DOWN | {"at": "w"}), "old-gradient"),
    "in the caller's array": (
        "descend",
        WHILE.format(**DOWN).replace("np.array(w)", "w"),
        "writes-into-w",
    ),
    "one more": ("descend", WHILE.format(**DOWN | {"until": "<="}), "steps-off"),
    "a return too early": (
        "descend",
        WHILE.format(**DOWN).replace("        done += 1", "        return new"),
        "one-step",
    ),
    "normal equations": (
        "closed_form",
        ONES.format(**COLUMNS | {"solved": "np.linalg.solve(A.T @ A, A.T @ y)"}),
        "inverse",
    ),
    "x alone": (
        "closed_form",
        ONES.format(**COLUMNS | {"columns": "x"}),
        "no-bias-column",
    ),
    "slope first, then height": (
        "closed_form",
        """
    means = x.mean(0)
    slopes = np.linalg.pinv(x - means) @ (y - np.mean(y))
    return np.append(y.mean() - slopes @ means, slopes)
""",
        "not-the-shortest",
    ),
    "ones on the right": (
        "closed_form",
        ONES.format(**COLUMNS | {"columns": "np.hstack([x, ones])"}),
        "ones-last",
    ),
    "the norm of A": (
        "lr_limit",
        ONES.format(**COLUMNS | {"solved": "2 / np.linalg.norm(A, 2)"}),
        "singular-value",
    ),
    "the norm of its entries": (
        "lr_limit",
        ONES.format(**COLUMNS | {"solved": "2 / np.linalg.norm(A) ** 2"}),
        "all-eigenvalues",
    ),
    "of x alone": (
        "lr_limit",
        ONES.format(**COLUMNS | {"columns": "x", "solved": "2 / np.linalg.norm(A, 2) ** 2"}),
        "ones-forgotten",
    ),
}
OUTSIDE = {  # wrong, and like none of the catalogue
    "the square of x": ("predict", "\n    return w[0] + x**2 @ w[1:]\n"),
    "cubes": ("loss", "\n    return np.sum(np.abs(predict(x, w) - y) ** 3) / 2\n"),
    "weights that cost": (
        "loss",
        "\n    return np.sum((predict(x, w) - y) ** 2) / 2 + 0.5 * w @ w\n",
    ),
    "half of the inputs": ("gradient", LOOPS.format(**LOOP | {"each": "error * x[n, f] / 2"})),
    "a rate that falls": (
        "descend",
        WHILE.format(**DOWN).replace("done += 1", "done += 1\n        lr = lr / 2"),
    ),
    "the middle of the way": (
        "descend",
        WHILE.format(**DOWN).replace("return new", "return (new + w) / 2"),
    ),
    "a hundred steps": (
        "closed_form",
        "\n    return descend(x, y, np.zeros(x.shape[1] + 1), 0.01, 100)\n",
    ),
    "the height of the mean": (
        "closed_form",
        ONES.format(**COLUMNS).replace("return ", "w = ") + "    w[0] = y.mean()\n    return w\n",
    ),
    "three for two": (
        "lr_limit",
        ONES.format(**COLUMNS | {"solved": "3 / np.linalg.norm(A, 2) ** 2"}),
    ),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(LINE, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(LINE, with_body(function, body), tmp_path).failure
    assert failure is not None and failure.mistake is not None, failure
    assert failure.mistake.name == name and failure.sure, failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_a_mistake_outside_of_the_catalogue_has_no_sure_name(style, tmp_path):
    failure = of(LINE, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and (failure.mistake is None or not failure.sure), failure
    assert failure.case and failure.expected and failure.got


def test_the_gradient_of_the_framework_is_no_answer():
    body = """
    leaf = tg.Tensor(w, requires_grad=True)
    tg.sum((tg.Tensor(x) @ leaf[1:] + leaf[0] - y) ** 2 / 2).backward()
    return leaf.grad
"""
    assert broken_rules(LINE, f"import tinygraph as tg\n{with_body('gradient', body)}")


def drawn(seed):
    draw = np.random.default_rng(seed)
    N, F = draw.integers(1, 6, 2)
    return draw.standard_normal((N, F)), draw.standard_normal(N), draw.standard_normal(F + 1)


@pytest.mark.parametrize("seed", range(20))
def test_loss_and_gradient_are_those_of_the_framework(seed):
    x, y, w = drawn(seed)
    leaf = tg.Tensor(w, requires_grad=True)
    p = tg.linear(tg.Tensor(x), leaf[None, 1:], leaf[:1])[:, 0]
    total = tg.half_squared_error(p, y)
    total.backward()
    np.testing.assert_allclose(SOLUTION.predict(x, w), p.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(SOLUTION.loss(x, y, w), total.item(), rtol=1e-12)
    np.testing.assert_allclose(SOLUTION.gradient(x, y, w), leaf.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_descent_is_that_of_the_frameworks_optimizer(seed):
    x, y, w = drawn(seed)
    weights = tg.Parameter(w)
    optimizer = tg.optim.SGD([weights], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        tg.half_squared_error(tg.Tensor(x) @ weights[1:] + weights[0], y).backward()
        optimizer.step()
    got = SOLUTION.descend(x, y, w, 0.01, 5)
    np.testing.assert_allclose(got, weights.numpy(), rtol=1e-9, atol=1e-12)


def test_the_closed_form_is_the_least_loss_and_of_several_the_shortest():
    """The gradient is 0 there, and w is a combination of the rows of A: that makes it unique."""

    def least(case):
        x, y = case
        w, A = SOLUTION.closed_form(x, y), np.insert(x, 0, 1, axis=1)
        np.testing.assert_allclose(A.T @ (A @ w), A.T @ y, atol=1e-9)
        rows = np.linalg.qr(A.T)[0][:, : np.linalg.matrix_rank(A)]
        assert np.linalg.matrix_rank(np.column_stack([rows, w]), tol=1e-9) == rows.shape[1]

    for case in SETS:
        least(case)
    assert search(sets(), least, 40).error is None
    assert SOLUTION.closed_form(np.array([[2.0]]), np.array([5.0])) == pytest.approx([1, 2])


@pytest.mark.parametrize("x", [x for (x,) in INPUTS])
def test_descent_comes_nearer_below_the_limit_and_not_above(x):
    A = np.insert(x, 0, 1, axis=1)
    steepest = np.linalg.svd(A)[2][0]  # from there every step is along it
    for part, nearer in ((0.9, True), (1.1, False)):
        w = SOLUTION.descend(x, np.zeros(len(x)), steepest, part * SOLUTION.lr_limit(x), 10)
        assert (np.linalg.norm(w) < 1) == nearer


def test_the_worked_example_of_the_text():
    x, y, w = np.array([[1.0], [2.0]]), np.array([3.0, 5.0]), np.array([1.0, 3.0])
    assert SOLUTION.predict(x, w).tolist() == [4, 7] and SOLUTION.loss(x, y, w) == 2.5
    assert SOLUTION.gradient(x, y, w).tolist() == [3, 5]
    w = SOLUTION.descend(x, y, w, 0.1, 1)
    assert w == pytest.approx([0.7, 2.5]) and SOLUTION.loss(x, y, w) == pytest.approx(0.265)
    assert SOLUTION.closed_form(x, y) == pytest.approx([1, 2])
