"""Exercise 3: it is the graph's backward."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.framework.mlp import Framework, outputs
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.mlp.steps import xor

MLP = find("mlp")
SOLUTION = module(MLP.solution + MLP.harness)


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
