"""The recipe perceptron: its weights after every epoch by hand, and what it says at the end."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.recipes import perceptron
from tinygraph.recipes.truth_tables import INPUTS, TRUTH_TABLES, truth_table
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)
SEPARABLE = [name for name in TRUTH_TABLES if name not in ("xor", "xnor")]


def by_the_rule(labels, epochs):
    """The weights after each epoch in units of eta, in exact integers, by the rule alone."""
    w, after = (0, 0, 0), []
    for _ in range(epochs):
        for (a, b), y in zip(INPUTS, labels, strict=True):
            error = y - (w[0] + w[1] * a + w[2] * b >= 0)
            w = w[0] + error, w[1] + error * a, w[2] + error * b
        after.append(w)
    return after


def fit(**settings):
    recipe, rows = perceptron.recipe, []
    task = recipe.prepare(recipe.settings(settings))
    return recipe.learn(task, rows, QUIET), rows, task.network


def weights(rows):
    return [tuple(row[name] for name in perceptron.WEIGHTS) for row in rows]


def test_nand_converges():
    outcome, rows, network = fit(function="nand", lr=0.5)
    assert outcome["converged"] and outcome["epochs"] == 6
    # by hand, in units of eta: from (0, 0, 0) the rows 00 01 10 are right and 11 is wrong, so
    # that (1, 1, 1) is taken away; in the second epoch 00, 01 and 11 are wrong, and so on
    units = [(-1, -1, -1), (0, -2, -1), (1, -2, -1), (1, -2, -2), (2, -2, -1), (2, -2, -1)]
    assert weights(rows) == [tuple(u / 2 for u in unit) for unit in units]
    assert [row["mistakes"] for row in rows] == [1, 3, 3, 2, 1, 0]
    assert rows[-1]["accuracy"] == 1.0
    assert network.weight.numpy().tolist() == [1.0, -1.0, -0.5]


def test_xor_goes_round():
    outcome, rows, _ = fit(function="xor", lr=0.5)
    assert not outcome["converged"] and outcome["epochs"] == 3
    assert weights(rows) == [(-0.5, -0.5, 0.0), (0.0, -0.5, 0.0), (0.0, -0.5, 0.0)]
    assert "does not converge" in outcome["text"] and "no line separates" in outcome["text"]
    assert "after epoch 3 are those after epoch 2" in outcome["text"]
    again = by_the_rule(TRUTH_TABLES["xor"], 200)
    assert set(again[2:]) == {(0, -1, 0)}  # for ever: the claim of the text


@pytest.mark.parametrize("function", TRUTH_TABLES)
@pytest.mark.parametrize("lr", [0.25, 1.0, 4.0])
def test_weights_are_those_of_the_rule_in_integers(function, lr):
    outcome, rows, _ = fit(function=function, lr=lr)
    assert outcome["converged"] == (function in SEPARABLE)
    exact = by_the_rule(TRUTH_TABLES[function], outcome["epochs"])
    assert weights(rows) == [tuple(float(Fraction(lr) * u) for u in unit) for unit in exact]


def test_no_line_separates_xor_and_one_separates_the_others():
    """All ways in which lines of small whole weights part the four points."""
    small = range(-4, 5)
    parted = {
        tuple(int(w0 + w1 * a + w2 * b >= 0) for a, b in INPUTS)
        for w0, w1, w2 in product(small, small, small)
    }
    assert len(parted) == 14  # of 16 functions of two inputs: all but xor and xnor
    for name, labels in TRUTH_TABLES.items():
        assert (labels in parted) == (name in SEPARABLE)


def test_epochs_that_do_not_suffice():
    outcome, rows, _ = fit(function="nand", epochs=5)
    assert not outcome["converged"] and outcome["epochs"] == 5
    assert "not converged after 5 epochs" in outcome["text"]
    assert len(rows) == 5


def test_the_neuron_by_its_formula():
    network = perceptron.Perceptron(2)
    network.weight.value = [1.0, -1.0, -0.5]
    x = perceptron.with_ones(truth_table("nand")[0])
    np.testing.assert_array_equal(network(x).numpy(), [1, 1, 1, 0])
    assert network(tg.Tensor(x)).dtype == np.float64


@pytest.mark.parametrize("function, steps", [("nand", 6), ("xor", 3)])
def test_the_emulator_ends_with_the_same_bits(function, steps):
    _, rows, network = fit(function=function)
    _, through, same = fit(function=function, device="emulator")
    assert weights(through) == weights(rows) and len(rows) == steps
    assert same.weight.numpy().tobytes() == network.weight.numpy().tobytes()


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"function": "nandd"}, "did you mean 'nand'"),
        ({"lr": 0.0}, "lr: expected a finite number above 0, got 0.0"),
        ({"lr": float("nan")}, "lr: expected a finite number above 0, got nan"),
        ({"epochs": 0}, "epochs: expected a whole number from 1"),
        ({"device": "emulater"}, "device: expected one of cpu, emulator, cuda"),
    ],
)
def test_bad_settings(tmp_path, settings, words):
    recipe = recipes.get("perceptron")
    with pytest.raises(ArgumentError) as error:
        recipe.train(recipe.settings(settings), RunFolder(tmp_path / "run"), None, False, QUIET)
    assert words in str(error.value)


# ---- runs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    recipe, run = recipes.get("perceptron"), RunFolder(tmp_path_factory.mktemp("run") / "r")
    result = recipe.train(recipe.settings({"function": "xor"}), run, None, False, QUIET)
    return run, result


def test_a_run_says_that_xor_did_not_converge(trained):
    run, result = trained
    assert result == {"accuracy": 0.5}
    written = json.loads((run.path / "result.json").read_text())
    assert written["test"] == result and written["training"]["converged"] is False
    assert "no line separates" in written["training"]["text"]
    assert recipes.get("perceptron").evaluate(RunFolder.open(run.path), None) == result


def test_pictures(trained):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    run, _ = trained
    drawn = list(recipes.get("perceptron").draw(RunFolder.open(run.path)))
    assert [path.name for path in drawn] == [
        "graph.svg",
        "report.html",
        "steps.html",
        "decision_lines.png",
    ]
    assert "does not converge" in drawn[1].read_text()


def test_the_picture_has_a_panel_for_every_epoch(trained, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    seen = []
    panel = perceptron._panel
    monkeypatch.setattr(
        perceptron, "_panel", lambda axes, w, labels: seen.append(w) or panel(axes, w, labels)
    )
    run, _ = trained
    perceptron.decision_lines(run, "xor", run.path / "lines.png")
    assert [tuple(w) for w in seen] == weights(run.rows())


def test_a_log_without_weights(trained, tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    run, _ = trained
    other = RunFolder(tmp_path / "other")
    other.write_config(run.config)
    other.append({"epoch": 1, "bias": None})
    with pytest.raises(CheckpointError, match="a number bias in each row, got None"):
        perceptron.decision_lines(other, "xor", tmp_path / "lines.png")
