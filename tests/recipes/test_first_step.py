"""The page of a run's first step: it is the step that the training has made, to the bit."""

import numpy as np
import pytest

import tinygraph as tg
from tests.browser import dom
from tests.show.stepping.pages import data_of, decoded, numbers_by_name, same_bits, whole
from tinygraph import recipes
from tinygraph.cli import main
from tinygraph.engine.random import default_generator
from tinygraph.engine.running import Runner
from tinygraph.training import Progress, RunFolder

QUIET = Progress(lines=False, bar=False)
SMALL = {  # the page has the bits of a training without a plan
    "linear_regression": {"epochs": 3},
    "xor_mlp": {"epochs": 2},
    "numba_cnn": {"data": "digits", "epochs": 1, "filters": 4, "batch_size": 100, "compile": False},
    "vgg_cifar": {
        "data": "digits",
        "epochs": 1,
        "widths": (4,),
        "batch_size": 400,
        "compile": False,
    },
    "vgg224": {"widths": (2, 2, 2, 2, 2), "batch_size": 2, "compile": False},
}


class FirstUpdate(Runner):
    """Keeps the parameters as the first update leaves them."""

    def __init__(self):
        self.after = {}

    def update(self, optimizer):
        self.below.update(optimizer)
        if not self.after:
            self.after = {name: p.numpy().copy() for name, p in optimizer.parameters.items()}


def trained(name, path, **settings):
    recipe, run = recipes.get(name), RunFolder(path)
    with FirstUpdate() as first:
        recipe.train(recipe.settings(settings), run, None, False, QUIET)
    return recipe, run, first.after


def updates_of(data):
    names = {number: name for name, number in numbers_by_name(data).items()}
    return {names[str(s["node"])]: s for s in data["steps"] if s["phase"] == "update"}


@pytest.mark.second
@pytest.mark.parametrize("name", SMALL)
def test_the_update_on_the_page_is_that_of_the_training(tmp_path, name):
    recipe, run, after = trained(name, tmp_path / "run", **SMALL[name])
    tg.manual_seed(11)
    draws, parameters = default_generator.state_dict(), run.load_parameters()
    path = recipe.steps(RunFolder.open(run.path))
    assert path == run.path / "steps.html" and path.stat().st_size < 1_000_000
    data = data_of(path)
    updates = updates_of(data)
    assert set(updates) == set(after) and after
    for parameter, array in after.items():
        assert same_bits(whole(data, updates[parameter]["after"]), array)
    assert default_generator.state_dict() == draws
    assert all(same_bits(a, parameters[n]) for n, a in run.load_parameters().items())


@pytest.mark.second
@pytest.mark.parametrize("name", SMALL)
def test_a_browser_shows_first_middle_and_last_step(tmp_path, name):
    recipe, run, after = trained(name, tmp_path / "run", **SMALL[name])
    path = recipe.steps(RunFolder.open(run.path))
    steps = data_of(path)["steps"]
    documents = {k: dom(path, f"step={k}") for k in (1, len(steps) // 2, len(steps))}
    for k, document in documents.items():
        assert document.one("html").attributes["data-step"] == str(k)
        (now,) = document.one(id="graph").all("g", "now")
        assert now.attributes["data-number"] == str(steps[k - 1]["node"])
    last = [f for f in document.one(id="panel").all("figure") if f.one("h3").text == "after"]
    flat = decoded(last[0].attributes["data-bits"], last[0].attributes["data-code"])
    *_, parameter = updates_of({"nodes": data_of(path)["nodes"], "steps": steps})
    assert flat.tobytes() == after[parameter].tobytes()


def test_a_compiled_training_has_a_page_of_its_graph_with_the_plan_beside_it(tmp_path):
    _, run, after = trained("xor_mlp", tmp_path / "run", epochs=2, compile=True)
    path = recipes.get("xor_mlp").steps(RunFolder.open(run.path))
    data = data_of(path)
    assert "as tg.compile runs it" in path.read_text(encoding="utf-8")
    assert {s["phase"] for s in data["steps"]} == {"forward", "seed", "backward", "leaf", "update"}
    for parameter, step in updates_of(data).items():
        np.testing.assert_allclose(whole(data, step["after"]), after[parameter], rtol=1e-12)


def test_the_perceptron_has_no_backward_but_writes_its_weights(tmp_path):
    _, run, _ = trained("perceptron", tmp_path / "run", epochs=1, function="xor")
    data = data_of(recipes.get("perceptron").steps(RunFolder.open(run.path)))
    assert {s["phase"] for s in data["steps"]} == {"forward", "write"}
    last = data["steps"][-1]
    assert whole(data, last["before"]).tolist() == [0, 0, 0]
    assert whole(data, last["after"]).tolist() == [-0.5, 0, 0]


def test_the_command_draws_the_page_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, run, _ = trained("xor_mlp", tmp_path / "run", epochs=1)
    assert main(["show", "run", "--steps"]) == 0
    assert capsys.readouterr().out == "wrote run/steps.html\n"
    assert not (run.path / "graph.svg").exists() and (run.path / "steps.html").exists()


def test_with_other_data_the_command_says_which(tmp_path, capsys):
    _, run, _ = trained("numba_cnn", tmp_path / "run", **SMALL["numba_cnn"])
    wrong = {**run.config, "image_shape": [1, 9, 9]}
    RunFolder.open(run.path).write_config(wrong)
    assert main(["show", str(run.path), "--steps"]) == 2
    err = capsys.readouterr().err
    assert "image_shape" in err and "Traceback" not in err
