"""Exercise 5: it judges as the framework's check does."""

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
