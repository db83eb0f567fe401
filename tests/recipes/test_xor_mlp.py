"""The recipe xor_mlp: the delta rule by hand and against the graph, xor solved, the pictures."""

import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError, ShapeError
from tinygraph.recipes import xor_mlp
from tinygraph.recipes.network_picture import beside, network_svg
from tinygraph.recipes.truth_tables import truth_table
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)


def fit(**settings):
    recipe, rows = xor_mlp.recipe, []
    task = recipe.prepare(recipe.settings(settings))
    return recipe.learn(task, rows, QUIET), rows, task.network


def test_one_step_of_the_delta_rule_by_hand():
    """x = (1, 0), y = 1; all weights ln 3, all biases 0, one hidden neuron; s(ln 3) = 3/4.

    h = s(ln 3) = 3/4           o = s(3/4 ln 3) = 3^(3/4) / (1 + 3^(3/4))
    delta2 = (o - 1) o (1 - o)  dJ/dW2 = 3/4 delta2, dJ/db2 = delta2
    delta1 = delta2 ln 3 * 3/4 * 1/4          dJ/dW1 = (delta1, 0), dJ/db1 = delta1
    """
    network = xor_mlp.model(1)
    for name, parameter in network.named_parameters():
        parameter.value[...] = math.log(3) if "weight" in name else 0.0
    x, y = tg.Tensor([[1.0, 0.0]], dtype="float64"), tg.Tensor([[1.0]], dtype="float64")
    o = 3**0.75 / (1 + 3**0.75)
    delta2 = (o - 1) * o * (1 - o)
    delta1 = delta2 * math.log(3) * 0.75 * 0.25
    by_hand = {
        "0.weight": [[delta1, 0.0]],
        "0.bias": [delta1],
        "2.weight": [[0.75 * delta2]],
        "2.bias": [delta2],
    }
    tg.half_squared_error(network(x), y).backward()
    rule = xor_mlp.delta_rule(network, x, y)
    for name, parameter in network.named_parameters():
        np.testing.assert_allclose(rule[name], by_hand[name], rtol=1e-14)
        np.testing.assert_allclose(parameter.grad, by_hand[name], rtol=1e-14)


@pytest.mark.parametrize("hidden", [1, 2, 5])
def test_the_delta_rule_is_the_backward_of_the_graph(hidden):
    tg.manual_seed(hidden)
    network = xor_mlp.model(hidden)
    rng = np.random.default_rng(0)
    x, y = tg.Tensor(rng.standard_normal((7, 2))), tg.Tensor(rng.standard_normal((7, 1)))
    tg.half_squared_error(network(x), y).backward()
    rule = xor_mlp.delta_rule(network, x, y)
    assert set(rule) == {name for name, _ in network.named_parameters()}
    for name, parameter in network.named_parameters():
        assert np.abs(parameter.grad).max() > 1e-4
        np.testing.assert_allclose(rule[name], parameter.grad, rtol=1e-12, atol=1e-15)


def test_xor_is_solved_in_512_epochs():
    outcome, rows, network = fit()
    assert outcome["solved"] and outcome["epochs"] == 512 and outcome["loss"] < 0.01
    assert rows[-1]["epoch"] == 512 and rows[-1]["accuracy"] == 1.0
    assert [row["epoch"] for row in rows[:-1]] == list(range(10, 512, 10))
    outputs = network(truth_table("xor")[0]).numpy()[:, 0]
    np.testing.assert_allclose(outputs, [0, 1, 1, 0], atol=0.1)


@pytest.mark.second
def test_both_ways_to_the_gradients_end_alike():
    outcome, _, network = fit()
    other, _, by_rule = fit(gradients="delta_rule")
    assert other["epochs"] == outcome["epochs"]
    for name, array in network.state_dict().items():
        np.testing.assert_allclose(by_rule.state_dict()[name], array, rtol=1e-9)


@pytest.mark.second
def test_compiled_it_ends_alike():
    outcome, _, network = fit()
    other, _, planned = fit(compile=True)
    assert other["epochs"] == outcome["epochs"]
    for name, array in network.state_dict().items():
        np.testing.assert_allclose(planned.state_dict()[name], array, rtol=1e-9)


@pytest.mark.parametrize("seed", range(1, 6))
def test_other_seeds(seed):
    assert fit(seed=seed)[0]["solved"]


def test_one_hidden_neuron_is_too_few():
    outcome, rows, _ = fit(hidden=1, epochs=300)
    assert not outcome["solved"] and outcome["epochs"] == rows[-1]["epoch"] == 300
    assert rows[-1]["accuracy"] <= 0.75


def test_the_emulator_takes_the_same_steps():
    *_, network = fit(epochs=20)
    *_, through = fit(epochs=20, device="emulator")
    *_, by_rule = fit(epochs=20, device="emulator", gradients="delta_rule")
    for name, array in network.state_dict().items():
        np.testing.assert_allclose(through.state_dict()[name], array, rtol=1e-11)
        np.testing.assert_allclose(by_rule.state_dict()[name], array, rtol=1e-11)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"hidden": 0}, "hidden: expected a whole number from 1"),
        ({"gradients": "delta_rule", "compile": True}, "compile: expected gradients=graph"),
        ({"gradients": "delta_rul"}, "did you mean 'delta_rule'"),
        ({"function": "xr"}, "did you mean 'xor'"),
        ({"hiden": 2}, "did you mean 'hidden'"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ArgumentError) as error:
        recipes.get("xor_mlp").settings(settings)
    assert words in str(error.value)


# ---- pictures -------------------------------------------------------------------------------


@pytest.mark.second
def test_a_run_draws_the_network_beside_its_graph(tmp_path):
    recipe, run = recipes.get("xor_mlp"), RunFolder(tmp_path / "run")
    result = recipe.train(recipe.settings({"hidden": 3}), run, None, False, QUIET)
    assert json.loads((run.path / "result.json").read_text())["training"]["solved"] is True
    assert recipe.evaluate(RunFolder.open(run.path), None) == result
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    drawn = [path.name for path in recipe.draw(RunFolder.open(run.path))]
    assert drawn == [
        "graph.svg",
        "report.html",
        "steps.html",
        "network_and_graph.svg",
        "curves.svg",
    ]
    both = (run.path / "network_and_graph.svg").read_text()
    root = ElementTree.fromstring(both)  # well formed
    assert len(root.findall("{*}svg")) == 2
    assert both.count("<circle") == 2 + 3 + 1 and both.count("<line ") == 2 * 3 + 3
    state = run.load_parameters()
    for number in (state["0.weight"][2, 1], state["2.weight"][0, 1], state["2.bias"][0]):
        assert f">{number:+.2f}</text>" in both
    assert "half_squared_error" in both and both.count('class="node') == 11


@pytest.mark.second
def test_the_picture_of_the_page_is_the_one_that_is_drawn(tmp_path):
    """Where this fails: train xor_mlp, look at network_and_graph.svg, and copy it there."""
    recipe, run = recipes.get("xor_mlp"), RunFolder(tmp_path / "run")
    recipe.train(recipe.config(), run, None, False, QUIET)
    drawn = {path.name: path for path, _ in zip(recipe.draw(run), range(4), strict=False)}
    page = Path(__file__).parents[2] / "docs/images/xor_mlp.svg"
    assert drawn["network_and_graph.svg"].read_text() == page.read_text()


def test_signs_and_widths_of_the_lines():
    """The line of the largest weight is the widest; blue is below zero."""
    svg = network_svg([(np.array([[-2.0, 1.0]]), np.array([0.0]))], ["a", "b"])
    lines = [line.attrib for line in ElementTree.fromstring(svg).findall("{*}line")]
    assert [line["stroke"] for line in lines] == ["#2f66c4", "#c4512f"]
    assert [float(line["stroke-width"]) for line in lines] == [5.0, 2.9]


def test_pictures_that_cannot_be_drawn():
    with pytest.raises(ShapeError, match=r"layer 0: expected weight \(O, 3\)"):
        network_svg([(np.zeros((1, 2)), np.zeros(1))], ["a", "b", "c"])
    with pytest.raises(ArgumentError, match="SVG document with width and height"):
        beside("<svg>", "<svg>")
