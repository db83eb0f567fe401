"""Exercise 7: it is the op of the framework."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

CONV = find("conv")

BACKWARD = """
        x, w = saved
        N, O = gy.shape[:2]
        gx, gw = np.zeros_like(x), np.zeros_like(w)
        gb = gy.sum(axis=(0, 2, 3))
        for n in range(N):
            flat = gy[n].reshape(O, -1)
            one = im2col(x[n : n + 1], w.shape[2:], self.stride, self.padding)[0]
            gw += np.dot(flat, one.T).reshape(w.shape)
            back = np.dot(w.reshape(O, -1).T, flat)[None]
            gx[n] = col2im(back, x.shape[2:], w.shape[2:], self.stride, self.padding)[0]
        return (gx, gw, gb)
"""


def with_body(function, body):
    """The solution with another body of one function, or of a method of its class."""
    text = CONV.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n" if function != "backward" else "\0", start)
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end if end >= 0 else len(text) :]


@pytest.mark.second
def test_of_several_inputs_gradcheck_names_the_one_that_is_wrong(tmp_path):
    text = with_body("backward", BACKWARD.replace("gw += ", "gw += 0.5 * "))
    failure = of(CONV, text, tmp_path).failure
    assert failure.text.startswith("gradcheck: the gradient of w is half of what it should be")
    assert failure.case.splitlines()[1:] == [
        "  x = [[[[1, 2, 3]]]]",
        "  w = [[[[1, 10]]]]",
        "  b = [0]",
        "  gy = [[[[1, 8]]]]",
    ]
    assert (failure.expected, failure.got) == ("[[[[17, 26]]]]", "[[[[8.5, 13]]]]")


def test_the_worked_example_of_the_text():
    solution = module(CONV.solution)
    x, w = np.array([[[[1.0, 2, 3, 4]]]]), np.array([[[[1.0, 10]]]])
    assert solution.direct(x, w, np.zeros(1), (1, 1), (0, 0)).tolist() == [[[[21, 32, 43]]]]
    op = solution.Conv2d((1, 1), (0, 0))
    gx, gw, gb = op.backward(None, np.array([[[[1.0, 0, 2]]]]), (x, w), (True,) * 3)
    assert (gx.tolist(), gw.tolist(), gb.tolist()) == ([[[[1, 10, 2, 20]]]], [[[[7, 10]]]], [3])


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_the_op_of_the_framework(seed):
    draw = np.random.default_rng(seed)
    k, s, p = draw.integers(1, 4, 2), draw.integers(1, 4, 2), draw.integers(0, 3, 2)
    size = np.maximum(k - 2 * p, 1) + draw.integers(0, 5, 2)
    (N, C, filters), solution = draw.integers(1, 4, 3), module(CONV.solution)
    shapes = (N, C, *size), (filters, C, *k), (filters,)
    x, w, b = (tg.Tensor(draw.standard_normal(shape), requires_grad=True) for shape in shapes)
    k, s, p, size = (tuple(map(int, pair)) for pair in (k, s, p, size))
    y = tg.conv2d(x, w, b, s, p)
    arrays = x.value, w.value, b.value
    np.testing.assert_allclose(solution.direct(*arrays, s, p), y.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(solution.gemm(*arrays, s, p), y.value, rtol=1e-9, atol=1e-12)
    cols = tg.im2col(x, k, s, p).value
    np.testing.assert_array_equal(solution.im2col(x.value, k, s, p), cols)
    image = tg.col2im(cols, size, k, s, p).value
    np.testing.assert_allclose(solution.col2im(cols, size, k, s, p), image, rtol=1e-12)
    gy = draw.standard_normal(y.shape)
    y.backward(gy)
    made = solution.Conv2d(s, p).backward(None, gy, arrays[:2], (True,) * 3)
    for got, leaf in zip(made, (x, w, b), strict=True):
        np.testing.assert_allclose(got, leaf.grad, rtol=1e-9, atol=1e-12)
