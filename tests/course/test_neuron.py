"""Exercise 1: it is the framework's neuron; answers in other styles are right, or named."""

import numpy as np
import pytest

import tinygraph as tg
from tests.course.test_exercises import of
from tinygraph.recipes.perceptron import Perceptron, with_ones
from tinygraph.recipes.truth_tables import truth_table
from tinygraph.testing.drawing import search
from tinygraph_course.checking.rules import broken_rules
from tinygraph_course.checking.steps import module
from tinygraph_course.content.exercise import find
from tinygraph_course.exercises.neuron.steps import separable

NEURON = find("neuron")
SOLUTION = module(NEURON.solution)


def with_body(function, body):
    """The solution with another body of one function."""
    text = NEURON.solution
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    end = len(text) if end < 0 else end
    head = text[start : text.index('"""', text.index('"""', start) + 3) + 3]
    return text[:start] + head + body + text[end:]


BRANCHES = """
    if y == 1 and respond(x, w) == 0:
        return w + eta * {ones}
    if y == 0 and respond(x, w) == 1:
        return w {sign} eta * {ones}
    return {else_}
"""
BRANCH = {"ones": "np.insert(x, 0, 1)", "sign": "-", "else_": "w"}
WHILE = """
    w, mistakes = np.zeros(len(x[0]) + 1), []
    while len(mistakes) < epochs and (not mistakes or mistakes[-1] > 0):
        before = {counted}
        for n in range(len(y)):
            error = y[n] - respond(x[n], w)
            if error {when}:
                before += 1
                w = update(w, x[n], y[n], eta)
        mistakes.append({noted})
    return w, mistakes
"""
LOOP = {"counted": "0", "when": "!= 0", "noted": "before"}
SEEN = """
    seen = {}
    for j, row in enumerate(history):
        key = tuple(row)
        if key in seen:
            return seen[key], j
        seen[key] = j
"""
RIGHT = {
    "heaviside of numpy": (
        "respond",
        "\n    return np.heaviside(np.dot(x, w[1:]) + w[0], 1.0)\n",
    ),
    "a loop and an if": (
        "respond",
        """
    total = w[0]
    for f in range(len(x)):
        total += w[f + 1] * x[f]
    if total < 0:
        return 0
    else:
        return 1
""",
    ),
    "a first input of 1": (
        "respond",
        "\n    return 1.0 if np.sum(np.append(1, x) * w) >= 0 else 0.0\n",
    ),
    "two branches": ("update", BRANCHES.format(**BRANCH)),
    "a concatenation": (
        "update",
        "\n    d = y - respond(x, w)\n    return w + eta * d * np.concatenate(([1.0], x))\n",
    ),
    "a while": ("learn", WHILE.format(**LOOP)),
    "counts in an array": (
        "learn",
        WHILE.format(**LOOP).replace("w, mistakes\n", "w, np.array(mistakes, dtype=int)\n"),
    ),
    "rows in a dict": ("repeats", SEEN),
    "rows in a list": (
        "repeats",
        """
    seen = []
    for row in history.tolist():
        if row in seen:
            return [seen.index(row), len(seen)]
        seen.append(row)
    return None
""",
    ),
}
WRONG = {  # function, body, name of the mistake
    "an if above zero": (
        "respond",
        "\n    if w[0] + np.sum(w[1:] * x) > 0:\n        return 1\n    return 0\n",
        "silent-at-zero",
    ),
    "the value of a comparison": (
        "respond",
        "\n    return w[0] + np.dot(w[1:], x) >= 0\n",
        "truth-value",
    ),
    "minus the bias": (
        "respond",
        "\n    return np.heaviside(w[1:].dot(x) - w[0], 1)\n",
        "bias-as-threshold",
    ),
    "a sign": (
        "respond",
        "\n    return 1 if np.dot(w[1:], x) + w[0] >= 0 else -1\n",
        "minus-one",
    ),
    "heaviside of each": (
        "respond",
        "\n    return np.where(w[1:] * x + w[0] < 0, 0, 1)\n",
        "one-by-one",
    ),
    "all of w with x": (
        "respond",
        "\n    return 1 if np.dot(w, x) >= 0 else 0\n",
        "one-input-too-few",
    ),
    "x as it is": (
        "update",
        "\n    if respond(x, w) != y:\n        w = w + eta * (2 * y - 1) * x\n    return w\n",
        "x-without-its-one",
    ),
    "branches exchanged": (
        "update",
        """
    if respond(x, w) > y:
        return w + eta * np.insert(x, 0, 1)
    if respond(x, w) < y:
        return w - eta * np.insert(x, 0, 1)
    return w
""",
        "walks-away",
    ),
    "only where it should fire": (
        "update",
        BRANCHES.format(**BRANCH).replace("y == 0 and", "False and"),
        "one-kind-of-mistake",
    ),
    "plus in both branches": (
        "update",
        BRANCHES.format(**BRANCH | {"sign": "+"}),
        "always-towards-firing",
    ),
    "a bias that stays": (
        "update",
        BRANCHES.format(**BRANCH | {"ones": "np.insert(x, 0, 0)"}),
        "bias-stays",
    ),
    "Hebb": ("update", "\n    return w + eta * y * np.insert(x, 0, 1)\n", "learns-where-right"),
    "in place": (
        "update",
        "\n    w += eta * (y - respond(x, w)) * np.insert(x, 0, 1)\n    return w\n",
        "changes-given-weights",
    ),
    "the rule of Widrow and Hoff": (
        "update",
        "\n    x = np.insert(x, 0, 1)\n    return w + eta * (y - w @ x) * x\n",
        "sum-for-response",
    ),
    "all responses at once": (
        "learn",
        """
    w, mistakes = np.zeros(x.shape[1] + 1), []
    ones = np.column_stack([np.ones(len(x)), x])
    for _ in range(epochs):
        errors = y - np.heaviside(ones @ w, 1)
        w = w + eta * errors @ ones
        mistakes.append(int(np.abs(errors).sum()))
        if not errors.any():
            break
    return w, mistakes
""",
        "old-weights",
    ),
    "to the last epoch": (
        "learn",
        WHILE.format(**LOOP).replace(" and (not mistakes or mistakes[-1] > 0)", ""),
        "goes-on",
    ),
    "what is wrong afterwards": (
        "learn",
        WHILE.format(**LOOP | {"noted": "sum(respond(a, w) != b for a, b in zip(x, y))"}),
        "counted-at-once",
    ),
    "what is wrong beforehand": (
        "learn",
        """
    w, mistakes = np.zeros(x.shape[1] + 1), []
    for _ in range(epochs):
        mistakes.append(sum(abs(y[n] - respond(x[n], w)) for n in range(len(y))))
        if mistakes[-1] == 0:
            break
        for n in range(len(y)):
            w = update(w, x[n], y[n], eta)
    return w, mistakes
""",
        "counted-at-once",
    ),
    "never back to 0": (
        "learn",
        WHILE.format(**LOOP | {"counted": "sum(mistakes[-1:])"}),
        "count-goes-on",
    ),
    "a return after the first": (
        "learn",
        WHILE.format(**LOOP).replace("    mistakes.append(before)", "    return w, [before]"),
        "return-in-the-loop",
    ),
    "rows side by side": (
        "repeats",
        """
    for j in range(1, len(history)):
        if (history[j - 1] == history[j]).all():
            return j - 1, j
    return None
""",
        "neighbours-alone",
    ),
    "a list of arrays": (
        "repeats",
        """
    seen = []
    for j, row in enumerate(history):
        if row in seen:
            return seen.index(row), j
        seen.append(row)
    return None
""",
        "truth-of-an-array",
    ),
    "rounded": (
        "repeats",
        """
    for j, later in enumerate(history):
        for i, earlier in enumerate(history[:j]):
            if np.isclose(earlier, later).all():
                return i, j
    return None
""",
        "close-is-not-the-same",
    ),
    "how many epochs a round has": (
        "repeats",
        SEEN.replace("return seen[key], j", "return j - seen[key]"),
        "one-number",
    ),
}
OUTSIDE = {  # wrong, and like none of the catalogue
    "fires from -1 on": ("respond", "\n    return int(w[0] + w[1:] @ x >= -1)\n"),
    "rounded": ("respond", "\n    return int(round(w[0] + w[1:] @ x) >= 0)\n"),
    "absolute weights": ("respond", "\n    return int(w[0] + np.abs(w[1:]) @ x >= 0)\n"),
    "half of eta": (
        "update",
        "\n    return w + eta / 2 * (y - respond(x, w)) * np.insert(x, 0, 1)\n",
    ),
    "weights that decay": (
        "update",
        "\n    return 0.5 * w + eta * (y - respond(x, w)) * np.insert(x, 0, 1)\n",
    ),
    "samples backwards": (
        "learn",
        WHILE.format(**LOOP).replace("range(len(y))", "reversed(range(len(y)))"),
    ),
    "weights of one": ("learn", WHILE.format(**LOOP).replace("np.zeros", "np.ones")),
    "in any order": ("repeats", SEEN.replace("tuple(row)", "tuple(sorted(row))")),
    "the row before": ("repeats", SEEN.replace("return seen[key], j", "return seen[key], j - 1")),
}


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", RIGHT)
def test_right_answers_in_another_style_pass(style, tmp_path):
    outcome = of(NEURON, with_body(*RIGHT[style]), tmp_path)
    assert outcome.ok, outcome.failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", WRONG)
def test_wrong_answers_in_another_style_are_named(style, tmp_path):
    function, body, name = WRONG[style]
    failure = of(NEURON, with_body(function, body), tmp_path).failure
    assert failure is not None and failure.mistake is not None, failure
    assert failure.mistake.name == name and failure.sure, failure


@pytest.mark.second
@pytest.mark.sweep(4)
@pytest.mark.parametrize("style", OUTSIDE)
def test_a_mistake_outside_of_the_catalogue_has_no_sure_name(style, tmp_path):
    failure = of(NEURON, with_body(*OUTSIDE[style]), tmp_path).failure
    assert failure is not None and (failure.mistake is None or not failure.sure), failure
    assert failure.case and failure.expected and failure.got


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
