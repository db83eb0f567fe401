"""Exercise 1: it is the framework's neuron."""

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.recipes.perceptron import Perceptron, with_ones
from tinygraph.recipes.truth_tables import truth_table
from tinygraph.testing.drawing import search
from tinygraph_course.checking.rules import broken_rules
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.neuron.steps import separable

NEURON = find("neuron")
SOLUTION = module(NEURON.solution)


def test_a_neuron_of_the_framework_is_no_answer():
    """A recipe has one; its module is not loaded in the learner's process either."""
    for line in ("from tinygraph.recipes import perceptron", "import tinygraph.recipes.perceptron"):
        assert broken_rules(NEURON, f"{line}\n{NEURON.solution}")


def learnt(x, y, eta, epochs):
    """The same by the recipe's neuron: weights, mistakes of each epoch, weights before each."""
    network, ones = Perceptron(x.shape[1]), tg.Tensor(with_ones(x))
    labels, mistakes, history = tg.Tensor(y), [], []
    while len(mistakes) < epochs and 0 not in mistakes:
        history.append(network.weight.numpy())
        rows = range(len(y))
        mistakes.append(sum(network.learn(ones[n : n + 1], labels[n : n + 1], eta) for n in rows))
    return network.weight.numpy(), mistakes, np.array([*history, network.weight.numpy()])


def test_the_solution_learns_as_the_neuron_of_the_framework():
    ended = []

    def same(case):
        w, mistakes, _ = learnt(*case)
        got, counts = SOLUTION.learn(*case)
        np.testing.assert_array_equal(got, w)
        assert counts == mistakes
        ended.append(0 in counts)

    assert search(separable(), same, 60).error is None
    assert sum(ended) > 30  # most drawn sets are learnt before the epochs are over


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_responds_and_updates_as_the_framework(seed):
    draw = np.random.default_rng(seed)
    x, w = (draw.integers(-3, 4, size).astype(float) for size in (4, 5))
    network = Perceptron(4)
    network.weight.value = w
    ones, y = tg.Tensor(with_ones(x[None])), float(draw.integers(2))
    assert SOLUTION.respond(x, w) == network(ones).item()
    network.learn(ones, tg.Tensor([y]), 0.5)
    np.testing.assert_array_equal(SOLUTION.update(w, x, y, 0.5), network.weight.numpy())


@pytest.mark.parametrize(("function", "ends"), [("nand", True), ("xor", False)])
def test_nand_ends_and_xor_is_proved_not_to(function, ends):
    x, y = truth_table(function)
    _, mistakes, history = learnt(x, y[:, 0], 1.0, 10)
    assert SOLUTION.learn(x, y[:, 0], 1.0, 10)[1] == mistakes
    assert (mistakes[-1] == 0) == ends == (SOLUTION.repeats(history[: len(mistakes)]) is None)
    if ends:
        assert mistakes == [1, 3, 3, 2, 1, 0]  # as the page of the exercise says
    else:
        assert mistakes == [3, 3, *[4] * 8]
        assert SOLUTION.repeats(history) == (2, 3) and history[2].tolist() == [0, -1, 0]


def test_the_worked_example_of_the_text():
    w = np.zeros(3)
    for x, y in (([0, 0], 1), ([0, 1], 1), ([1, 0], 1), ([1, 1], 0)):
        assert SOLUTION.respond(np.array(x, float), w) == 1
        w = SOLUTION.update(w, np.array(x, float), y, 1.0)
    assert w.tolist() == [-1, -1, -1] and SOLUTION.respond(np.zeros(2), w) == 0
