"""Exercise 2: loss, gradient and least squares are the framework's."""

import numpy as np
import pytest

import tinygraph as tg
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
