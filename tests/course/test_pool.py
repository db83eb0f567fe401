"""Exercise 8: it is the op of the framework."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

POOL = find("pool")


def with_body(function, body):
    """The solution with another body of one function."""
    text = POOL.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


GIVEN = "return (backward(gy, argmax, shape),)"


def test_of_an_unknown_mistake_in_a_gradient_what_gradcheck_found_is_told(tmp_path):
    text = POOL.solution.replace(GIVEN, "return (backward(gy, argmax, shape) / 2,)")
    failure = of(POOL, text, tmp_path).failure
    assert failure.mistake is None
    assert failure.text.startswith("gradcheck: the gradient of x is half of what it should be")
    assert failure.expected == "[[[[0, 3], [0, 0]]]]" and failure.got == "[[[[0, 1.5], [0, 0]]]]"


def test_an_op_that_breaks_where_it_is_differenced(tmp_path):
    """Whole numbers are right, and other ones raise."""
    broken = f"if np.any(gy % 1):\n            raise ValueError('odd')\n        {GIVEN}"
    failure = of(POOL, POOL.solution.replace(GIVEN, broken), tmp_path).failure
    assert "gradcheck: MaxPool2d: ValueError: odd" in failure.text


def test_a_function_that_answers_the_same_call_differently(tmp_path):
    body = "\n    CALLS.append(1)\n    return (size - kernel) // stride + 1 + (len(CALLS) == 20)\n"
    text = with_body("windows", body).replace(
        "import tinygraph as tg\n", "import tinygraph as tg\n\nCALLS = []\n"
    )
    failure = of(POOL, text, tmp_path).failure
    assert failure.text == "the same call gives other values each time"
    assert failure.case.startswith("windows(size=")


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_the_op_of_the_framework(seed):
    draw = np.random.default_rng(seed)
    kernel, stride = draw.integers(1, 4, 2)
    shape = (*draw.integers(1, 3, 2), *(kernel + draw.integers(0, 5, 2)))
    x = tg.Tensor(draw.integers(-3, 4, shape).astype(float), requires_grad=True)
    y = tg.max_pool2d(x, int(kernel), int(stride))
    grad = draw.standard_normal(y.shape)
    y.backward(grad)
    solution = module(POOL.solution)
    np.testing.assert_array_equal(solution.pool(x.value, kernel, stride), y.value)
    argmax = solution.positions(x.value, kernel, stride)
    np.testing.assert_allclose(solution.backward(grad, argmax, x.shape), x.grad, rtol=1e-12)
