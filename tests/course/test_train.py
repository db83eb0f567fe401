"""Exercise 14: it is what the framework computes."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find

TRAIN = find("train")
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def test_the_worked_example_of_the_text():
    solution = module(TRAIN.solution)
    op, one = solution.BatchNorm(3.0), np.ones(1)
    y, saved = op.forward(None, np.array([[1.0], [3.0]]), one, 0 * one)
    assert y.tolist() == [[-0.5], [0.5]]
    gx, gw, gb = op.backward(None, np.array([[1.0], [8.0]]), saved, (True,) * 3)
    assert (gx.tolist(), gw.tolist(), gb.tolist()) == ([[-1.3125], [1.3125]], [3.5], [9])
    r = np.array([0.7, 0.2, 0.9, 0.5])
    y, _ = solution.dropout(np.array([1.0, 2, 3, 4]), 0.5, lambda shape: r)
    assert y.tolist() == [2, 0, 6, 8]
    p, m, v = solution.adam(0 * one, 2 * one, 0 * one, 0 * one, 1, 1.0, 0.75, 0.75, 0.0)
    assert (p, m, v) == (-1, 0.5, 1)
    p, eg, ed = solution.adadelta(0 * one, 2 * one, 0 * one, 0 * one, 0.75, 1.0)
    assert (round(-p.item(), 3), eg, round(ed.item(), 3)) == (1.414, 1, 0.5)


@pytest.mark.parametrize("seed", range(10))
def test_the_solution_is_batch_norm_of_the_framework(seed):
    draw, solution = np.random.default_rng(seed), module(TRAIN.solution)
    N, C = draw.integers(2, 7), draw.integers(1, 5)
    arrays = [draw.standard_normal(shape) for shape in ((N, C), (C,), (C,), (N, C))]
    mean, var = draw.standard_normal(C), draw.uniform(0.5, 2, C)
    for training in (True, False):
        leaves = [tg.Tensor(a, requires_grad=True) for a in arrays[:3]]
        kept = mean.copy(), var.copy()
        y = tg.batch_norm(*leaves, *kept, training=training, momentum=0.3, eps=0.1)
        y.backward(arrays[3])
        op = solution.BatchNorm(0.1, None if training else (tuple(mean), tuple(var)))
        made, saved = op.forward(None, *arrays[:3])
        np.testing.assert_allclose(made, y.value, **CLOSE)
        for got, leaf in zip(op.backward(None, arrays[3], saved, (True,) * 3), leaves, strict=True):
            np.testing.assert_allclose(got, leaf.grad, **CLOSE)
        if training:
            moved = solution.running(mean, var, arrays[0], 0.3)
            np.testing.assert_allclose(moved, kept, **CLOSE)


def test_the_solution_drops_what_the_framework_drops():
    solution, x = module(TRAIN.solution), np.arange(1.0, 41).reshape(5, 8)
    tg.manual_seed(3)
    leaf = tg.Tensor(x, requires_grad=True)
    y = tg.dropout(leaf, 0.25)
    y.backward(x)
    r = np.where(y.value == 0, 0.0, 0.5)
    got, backward = solution.dropout(x, 0.25, lambda shape: r)
    np.testing.assert_allclose(got, y.value, **CLOSE)
    np.testing.assert_allclose(backward(x), leaf.grad, **CLOSE)


@pytest.mark.parametrize("name", ["Momentum", "adam", "adadelta"])
def test_the_solution_takes_the_steps_of_the_framework(name):
    draw, solution = np.random.default_rng(14), module(TRAIN.solution)
    start, zeros = draw.standard_normal((2, 3)), np.zeros((2, 3))
    ours, theirs = tg.Parameter(start.copy()), tg.Parameter(start.copy())
    optimizers = {
        "Momentum": tg.optim.SGD([theirs], lr=0.3, momentum=0.8),
        "adam": tg.optim.Adam([theirs], lr=0.3),
        "adadelta": tg.optim.Adadelta([theirs]),
    }
    momentum = solution.Momentum([ours], 0.3, 0.8)
    p, one, other = start, zeros, zeros
    for t in range(1, 8):
        ours.grad = theirs.grad = g = draw.standard_normal((2, 3))
        optimizers[name].step()
        if name == "Momentum":
            momentum.step()
            p = ours.value
        elif name == "adam":
            p, one, other = solution.adam(p, g, one, other, t, lr=0.3)
        else:
            p, one, other = solution.adadelta(p, g, one, other)
        np.testing.assert_allclose(p, theirs.value, **CLOSE)


def test_a_momentum_of_the_solution_is_saved_and_loaded():
    solution = module(TRAIN.solution + TRAIN.harness)
    case = [np.zeros(2)], [[np.ones(2)]] * 4, [0.5] * 4, 0.9
    assert [a[0].tolist() for a in solution.tg_momentum(*case, 2)[0]] == [
        a[0].tolist() for a in solution.tg_momentum(*case, 99)[0]
    ]
