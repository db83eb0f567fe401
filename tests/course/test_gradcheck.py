"""Exercise 5: it judges as the framework's check does; other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.gradcheck.ops import COALS, IN_PLACE, KINKS, LAYERS, RIGHT
from tinygraph_course.exercises.gradcheck.steps import verdicts

GRADCHECK = find("gradcheck")
SOLUTION = module(GRADCHECK.solution + GRADCHECK.harness)


def with_body(function, body):
    """The solution with another body of one function."""
    text = GRADCHECK.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


FLAT = """
    out = []
    for k in range(len(arrays)):
        flat = np.array(arrays[k], dtype=float).ravel()
        slopes = np.empty(flat.size)
        for j in range(flat.size):
            L = []
            for sign in (1, -1):
                moved = flat.copy()
                moved[j] += sign * {h}
                given = [*arrays[:k], moved.reshape(arrays[k].shape), *arrays[k + 1:]]
                L.append({loss})
            slopes[j] = (L[0] - L[1]) / (2 * {h})
        out.append(slopes.reshape(arrays[k].shape))
    return out
"""
LOSS = "(op.forward(*given) * upstream).sum()"
WORST = """
    y = op.forward(*arrays)
    gy = {gy}
    backwards, slopes = list(op.backward(gy.copy(), *arrays)), numeric(op, list(arrays), gy)
    if any(a.shape != b.shape for a, b in zip(backwards, slopes)):
        return float("inf")
    return float(np.max([{far} for a, b in zip(backwards, slopes)]))
"""
RANDOM = "np.random.default_rng().uniform(-2, 2, y.shape)"
FAR = "np.max(np.abs(a - b)) / max(1, np.max(np.abs(a)))"
ARRAYS = """
    def made(sizes):
        n, i, o = sizes
        numbers = {numbers}
        def array(*shape):
            count = int(np.prod(shape))
            return st.lists(numbers, min_size=count, max_size=count, unique={unique}).map(
                lambda values: np.array(values, float).reshape(shape))
        return st.tuples(array(n, i), array(o, i), array(o))
    return {sizes}.flatmap(made)
"""
NUMBERS = "st.integers(0, 10**6).map(lambda k: 2 * np.sin(k + 0.5))"  # never 0
SIZES = "st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))"
AGREES = """
    saved = [np.copy(a) for a in problem]
    gy = np.full(op.forward(*problem).shape, 2.0)
    op.backward(gy, *problem)
    if (gy != 2.0).any() or any(not np.array_equal(a, b) for a, b in zip(saved, problem)):
        return False
    return {verdict}
"""


RIGHT_ANSWERS = {
    "slope in two lines": (
        "slope",
        "\n    up, down = f(x + h), f(x - h)\n    return 0.5 / h * (up - down)\n",
    ),
    "numeric on flat copies": ("numeric", FLAT.format(h=1e-5, loss=LOSS)),
    "a smaller h": ("numeric", FLAT.format(h=1e-7, loss=LOSS)),
    "worst without a seed": ("worst", WORST.format(gy=RANDOM, far=FAR)),
    "numbers one by one": ("problems", ARRAYS.format(numbers=NUMBERS, sizes=SIZES, unique=True)),
    "agrees in several steps": (
        "agrees",
        AGREES.format(verdict="bool(worst(op, problem) <= 1e-5)"),
    ),
    "a truth value of numpy": (
        "agrees",
        AGREES.format(verdict="np.less(worst(op, problem), 1e-3)"),
    ),
}
WRONG_ANSWERS = {  # function, body, name of the mistake
    "towards the right": (
        "slope",
        "\n    here, there = f(x), f(x + h)\n    return (there - here) / h\n",
        "forward-difference",
    ),
    "half of the way": (
        "slope",
        "\n    d = 2 * h\n    a, b = x - d / 2, x + d / 2\n    return (f(b) - f(a)) / h\n",
        "divided-by-h",
    ),
    "y added up": (
        "numeric",
        FLAT.format(h=1e-5, loss="op.forward(*given).sum()"),
        "ignores-upstream",
    ),
    "h far too small": ("numeric", FLAT.format(h=1e-12, loss=LOSS), "h-too-small"),
    "h far too large": ("numeric", FLAT.format(h=0.1, loss=LOSS), "h-too-large"),
    "arrays as they are": (
        "numeric",
        FLAT.format(h=1e-6, loss=LOSS).replace("np.array(arrays[k], dtype=float)", "arrays[k]"),
        "float32",
    ),
    "another array moves": (
        "numeric",
        FLAT.format(h=1e-6, loss=LOSS.replace("given", "arrays")),
        "changes-a-copy",
    ),
    "in place, and left there": (
        "numeric",
        """
    out = []
    for a in arrays:
        g = np.zeros(a.shape)
        for index in np.ndindex(*a.shape):
            a[index] += 1e-6
            up = np.sum(op.forward(*arrays) * upstream)
            a[index] -= 2e-6
            g[index] = (up - np.sum(op.forward(*arrays) * upstream)) / 2e-6
        out.append(g)
    return out
""",
        "not-put-back-in-place",
    ),
    "ones": ("worst", WORST.format(gy="np.full(y.shape, 1.0)", far=FAR), "upstream-of-ones"),
    "averaged": (
        "worst",
        WORST.format(gy=RANDOM, far="np.mean(np.abs(a - b)) / max(1, np.max(np.abs(a)))"),
        "mean-for-worst",
    ),
    "added up": (
        "worst",
        WORST.format(gy=RANDOM, far="abs(a.sum() - b.sum()) / max(1, np.max(np.abs(a)))"),
        "sums-compared",
    ),
    "any shape": (
        "worst",
        WORST.format(gy=RANDOM, far=FAR).replace("a.shape != b.shape", "False"),
        "shapes-not-compared",
    ),
    "square matrices": (
        "problems",
        ARRAYS.format(
            numbers=NUMBERS,
            unique=True,
            sizes="st.tuples(st.integers(1, 3), st.integers(2, 3)).map(lambda t: (*t, t[1]))",
        ),
        "square",
    ),
    "a batch of one": (
        "problems",
        ARRAYS.format(
            numbers=NUMBERS,
            unique=True,
            sizes="st.tuples(st.just(1), st.integers(1, 3), st.integers(1, 3))",
        ),
        "one-sample",
    ),
    "floats from 0.1 to 2": (
        "problems",
        ARRAYS.format(
            numbers="st.integers(0, 999).map(lambda k: 1.1 + np.sin(k))", sizes=SIZES, unique=True
        ),
        "positive",
    ),
    "numbers that come twice": (
        "problems",
        ARRAYS.format(numbers="st.sampled_from([0.5, 1.5, 2.5])", sizes=SIZES, unique=False),
        "positive-and-equal",
    ),
    "whole numbers": (
        "problems",
        ARRAYS.format(numbers="st.integers(-2, 2)", sizes=SIZES, unique=False),
        "at-kinks",
    ),
    "no look at gy": (
        "agrees",
        "\n    far = worst(op, problem)\n    return bool(far < 1e-6)\n",
        "changes-not-looked-for",
    ),
    "a tenth is good enough": (
        "agrees",
        AGREES.format(verdict="bool(worst(op, problem) < 0.05)"),
        "too-loose",
    ),
    "not above": (
        "agrees",
        AGREES.format(verdict="False if worst(op, problem) > 1e-5 else True"),
        "nan-passes",
    ),
}
OUTSIDE = {  # wrong, and like none of the catalogue
    "half too much": ("slope", "\n    return 1.5 * (f(x + h) - f(x - h)) / (2 * h)\n"),
    "the gradient of the square": ("numeric", FLAT.format(h=1e-6, loss=f"({LOSS}) ** 2")),
    "the best array": ("worst", WORST.format(gy=RANDOM, far=FAR).replace("np.max([", "np.min([")),
    "weights alone are positive": (
        "problems",
        """
    def made(seed):
        numbers = np.random.default_rng(seed)
        return numbers.normal(size=(3, 2)), numbers.uniform(0.1, 2, (4, 2)), numbers.normal(size=4)
    return st.integers(0, 99).map(made)
""",
    ),
    "by the sign of b": ("agrees", "\n    return bool(problem[2][0] > 0)\n"),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT_ANSWERS)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(GRADCHECK, with_body(*RIGHT_ANSWERS[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG_ANSWERS)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG_ANSWERS[style]
    failure = of(GRADCHECK, with_body(function, body), tmp_path).failure
    assert failure.mistake is not None and failure.mistake.name == name, failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_what_is_not_in_the_catalogue_is_not_named(style, tmp_path):
    failure = of(GRADCHECK, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and failure.mistake is None, failure


def test_an_error_in_an_op_is_told_with_the_line_of_the_learner(tmp_path):
    body = "\n    return [op.forward(upstream, 1, 2, 3, 4)]\n"
    failure = of(GRADCHECK, with_body("numeric", body), tmp_path).failure
    assert (failure.kind, failure.source) == ("error", body.strip())


# ---- the layers, and the solution, against the framework ---------------------------------------


def framed(layer):
    """A layer as an op of the framework."""

    class Framed(tg.Op):
        def infer(self, x, w, b):
            return tg.Spec((x.shape[0], w.shape[0]), x.dtype)

        def forward(self, mem, *arrays):
            return layer.forward(*arrays), arrays

        def backward(self, mem, gy, saved, needs):
            with np.errstate(all="ignore"):
                return layer.backward(gy, *saved)

    return Framed()


def problem(seed):
    numbers = np.random.default_rng(seed).standard_normal
    return numbers((3, 2)), numbers((4, 2)), numbers(4)


def test_there_are_eleven_right_layers_and_twelve_coals():
    assert (len(RIGHT), len(COALS)) == (11, 12)
    assert {LAYERS[n].formula for n in COALS} <= {LAYERS[n].formula for n in RIGHT}
    assert set(KINKS) < set(RIGHT) and "writes" in LAYERS[IN_PLACE].wrong


@pytest.mark.second
@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_the_verdict_is_that_of_the_framework(number):
    report = tg.testing.gradcheck(
        framed(SOLUTION.tg_layer(number)), problem(number), raise_on_failure=False
    )
    assert (report.verdict == "pass") == (number in RIGHT), report
    with np.errstate(all="ignore"):
        assert SOLUTION.agrees(SOLUTION.tg_layer(number), problem(number)) == (number in RIGHT)


@pytest.mark.parametrize("seed", range(5))
def test_numeric_gradients_are_those_of_the_framework(seed):
    x, w, b = (tg.Tensor(a, requires_grad=True) for a in problem(seed))
    y = tg.softmax(tg.linear(x, w, b), axis=1)
    gy = np.random.default_rng(seed).standard_normal(y.shape)
    y.backward(gy)
    softmax = SOLUTION.tg_layer(0)
    got = SOLUTION.numeric(softmax, problem(seed), gy)
    for slopes, tensor in zip(got, (x, w, b), strict=True):
        np.testing.assert_allclose(slopes, tensor.grad, atol=1e-7)


def test_problems_with_a_hole_are_judged_by_it():
    """Of a batch of one the bias of sample 0 is right; no problem at all shows nothing."""
    numbers = np.random.default_rng(0).standard_normal
    one = [(numbers((1, 3)), numbers((2, 3)), numbers(2)) for _ in range(5)]
    assert [number for number, _ in verdicts(one)] == [3]
    assert {number for number, _ in verdicts([])} == set(COALS) - {IN_PLACE}
    assert verdicts([problem(1), problem(2)]) == []
