"""The recipe linear_regression: descent by hand, the closed form, where it stops and diverges."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tinygraph import recipes
from tinygraph.base.errors import ArgumentError, DivergenceError
from tinygraph.data import ArrayDataset
from tinygraph.recipes import Data, Task, linear_regression
from tinygraph.recipes.linear_regression import Config, Line, closed_form, line_of, recipe
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)


def descend(config, x=None, y=None):
    """The line, the rows of the log, and whether the gradient stopped."""
    found, rows = recipe.data(config) if x is None else Data(ArrayDataset(x, y)), []
    task = Task(config, found, recipe.model(config, {}).to(config.device))
    stopped = recipe.learn(task, rows, QUIET)["stopped"]
    return line_of(task.network), rows, stopped


def points(config):
    """x and y to learn from, x and y of the test."""
    found = recipe.data(config)
    return *found.training[:], *found.test[:]


def test_two_steps_by_hand():
    """Points (0, 1) and (2, 3), lr 1/4, from slope 0 and intercept 0.

    Step 1: o = 0 0, o - y = -1 -3, J = (1 + 9) / 2 = 5, dJ/dw = -1*0 - 3*2 = -6, dJ/db = -4,
    length sqrt(36 + 16); w = 6/4 = 1.5, b = 4/4 = 1.
    Step 2: o = 1 4, o - y = 0 1, J = 1/2, dJ/dw = 2, dJ/db = 1; w = 1.5 - 0.5 = 1, b = 0.75.
    """
    x, y = np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])
    line, rows, stopped = descend(Config(points=2, lr=0.25, epochs=2), x, y)
    assert line == Line(1.0, 0.75) and not stopped
    assert [row["loss"] for row in rows] == [5.0, 0.5]
    assert [row["gradient"] for row in rows] == pytest.approx([52**0.5, 5**0.5], rel=1e-15)
    assert [(row["slope"], row["intercept"]) for row in rows] == [(1.5, 1.0), (1.0, 0.75)]


def test_closed_form_of_small_numbers():
    """Through (0, 0), (1, 1), (2, 5): means 1 and 2, sum of products 5, of squares 2."""
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [5.0]])
    assert closed_form(x, y) == pytest.approx((2.5, -0.5), rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_descent_equals_the_closed_form(seed):
    """A gradient of at most 1e-10 leaves a distance of at most 1e-10 / the least eigenvalue."""
    config = Config(seed=seed)
    line, rows, stopped = descend(config)
    x, y, *_ = points(config)
    slope, intercept = np.polyfit(x[:, 0], y[:, 0], 1)  # by another way: QR
    assert stopped and rows[-1]["gradient"] <= 1e-10 < rows[-2]["gradient"]
    assert line == pytest.approx((slope, intercept), rel=0, abs=1e-10)
    assert closed_form(x, y) == pytest.approx((slope, intercept), rel=0, abs=1e-13)
    losses = [row["loss"] for row in rows]
    assert all(b <= a * (1 + 1e-14) for a, b in pairwise(losses))


def test_points_without_noise_give_the_line_back():
    line, _, stopped = descend(Config(slope=3.0, intercept=0.25, noise=0.0))
    assert stopped and line == pytest.approx((3.0, 0.25), rel=0, abs=1e-10)


@pytest.mark.parametrize("factor, converges", [(0.98, True), (1.02, False)])
def test_the_largest_learning_rate(factor, converges):
    """Just below 2 / the largest eigenvalue descent converges, just above it does not."""
    config = Config(tolerance=1e-8)
    x, *_ = points(config)
    limit = linear_regression.largest_rate(x)
    config = replace(config, lr=factor * limit)
    if converges:
        assert descend(config)[2]
    else:
        with pytest.raises(DivergenceError, match=f"lr: expected below {limit:.4g}"):
            descend(config)


def test_test_points_are_others_of_the_same_line():
    config = Config(points=2000, seed=3)
    x, y, test_x, test_y = points(config)
    assert not set(x[:, 0]) & set(test_x[:, 0])
    for inputs, targets in ((x, y), (test_x, test_y)):
        rest = targets - (config.intercept + config.slope * inputs)
        assert rest.std() == pytest.approx(config.noise, rel=0.05)


def test_compiled_it_finds_the_same_line():
    line, rows, _ = descend(Config())
    same, planned, stopped = descend(Config(compile=True))
    assert stopped and len(planned) == len(rows) and same == pytest.approx(line, rel=1e-12)


@pytest.mark.second
def test_the_emulator_finds_the_same_line():
    line, rows, _ = descend(Config(tolerance=1e-6))
    same, through, stopped = descend(Config(tolerance=1e-6, device="emulator"))
    assert stopped and len(through) == len(rows) > 50
    assert same == pytest.approx(line, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"points": 1}, "points: expected a whole number from 2 to 2147483647, got 1"),
        ({"points": 2.5}, "points: expected a whole number from 2 to 2147483647, got 2.5"),
        ({"lr": True}, "lr: expected a finite number above 0, got True"),
        ({"lr": -1.0}, "lr: expected a finite number above 0"),
        ({"tolerance": float("inf")}, "tolerance: expected a finite number above 0"),
        ({"slop": 1.0}, "did you mean 'slope'"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ArgumentError) as error:
        recipes.get("linear_regression").settings(settings)
    assert words in str(error.value)


@pytest.mark.second
def test_a_run(tmp_path):
    run = RunFolder(tmp_path / "run")
    result = recipe.train(recipe.settings({"seed": 1}), run, None, False, QUIET)
    written = json.loads((run.path / "result.json").read_text())
    assert written["test"] == result and written["training"]["stopped"] is True
    assert written["training"]["largest_difference"] < 1e-10
    assert result["rmse"] == pytest.approx((2 * result["loss"] / 50) ** 0.5, rel=1e-15)
    assert recipe.evaluate(RunFolder.open(run.path), None) == result
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    drawn = [path.name for path in recipe.draw(RunFolder.open(run.path))]
    assert drawn == ["graph.svg", "report.html", "steps.html", "descent.png"]
