"""Exercise 8: it is the op of the framework; answers in other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

POOL = find("pool")

RIGHT = {
    "by comprehension": (
        "pool",
        """
    N, C, H, W = x.shape
    rows = range(0, H - kernel + 1, stride)
    columns = range(0, W - kernel + 1, stride)
    return np.array([[[[x[n, c, h:h + kernel, w:w + kernel].max() for w in columns]
                       for h in rows] for c in range(C)] for n in range(N)], dtype=x.dtype)
""",
    ),
    "a running maximum": (
        "pool",
        """
    OH, OW = windows(x.shape[2], kernel, stride), windows(x.shape[3], kernel, stride)
    y = np.full((*x.shape[:2], OH, OW), -np.inf, x.dtype)
    for i in range(kernel):
        for j in range(kernel):
            part = x[:, :, i::stride, j::stride][:, :, :OH, :OW]
            y = np.where(part > y, part, y)
    return y
""",
    ),
    "sums by bincount": (
        "backward",
        """
    N, C, H, W = shape
    offsets = np.arange(N * C).reshape(N, C, 1, 1) * (H * W)
    places = (argmax + offsets).ravel()
    sums = np.bincount(places, gy.ravel().astype(float), N * C * H * W)
    return sums.astype(gy.dtype).reshape(shape)
""",
    ),
}
WRONG = {  # (function, body, name of the mistake)
    "counted from zero": (
        "windows",
        "\n    n = 0\n    while (n + 1) * stride + kernel <= size:\n        n += 1\n    return n\n",
        "window-lost",
    ),
    "a maximum that starts at 0": (
        "pool",
        """
    OH, OW = windows(x.shape[2], kernel, stride), windows(x.shape[3], kernel, stride)
    y = np.zeros((*x.shape[:2], OH, OW), x.dtype)
    for i in range(kernel):
        for j in range(kernel):
            y = np.maximum(y, x[:, :, i::stride, j::stride][:, :, :OH, :OW])
    return y
""",
        "begins-at-zero",
    ),
    "a loop that writes over": (
        "backward",
        """
    gx = np.zeros(shape, gy.dtype)
    for n, c, u, v in np.ndindex(*gy.shape):
        h, w = divmod(int(argmax[n, c, u, v]), shape[3])
        gx[n, c, h, w] = gy[n, c, u, v]
    return gx
""",
        "overwritten",
    ),
    "outside of the catalogue": ("backward", "\n    return np.full(shape, 0.5, gy.dtype)\n", None),
}


def with_body(function, body):
    """The solution with another body of one function."""
    text = POOL.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    assert of(POOL, with_body(*RIGHT[style]), tmp_path).ok


@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    found = of(POOL, with_body(function, body), tmp_path).failure.mistake
    assert (found and found.name) == name


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
