"""Trainer(compile=True, tune=True): choices lie in the run folder; a resumed run takes them."""

import json
import shutil

import numpy as np
import pytest

import tinygraph as tg
from tests.plan.networks import images, small_network
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError, CheckpointError
from tinygraph.cli import main
from tinygraph.plan import tuning
from tinygraph.plan.tuning import Candidate
from tinygraph.training import Progress, RunFolder, Trainer


def trainer_in(run):
    tg.manual_seed(1)
    model = small_network()
    rule = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Trainer(
        model, rule, tg.softmax_cross_entropy, run=run, progress=False, compile=True, tune=True
    )


def loader():
    return tg.data.DataLoader(tg.data.ArrayDataset(*images(0, 33)), 20, shuffle=True, seed=2)


def parameters(trainer):
    return [a.tobytes() for a in trainer.model.state_dict().values()]


@pytest.fixture
def slow_but_one(monkeypatch):
    """The plan with tiles of 3 on two threads is said to be fast."""
    monkeypatch.setattr(tuning, "cores", lambda: 2)
    monkeypatch.setattr(tuning, "candidates_for", lambda *_: [Candidate(1, 0), Candidate(2, 3)])
    monkeypatch.setattr(tuning, "_timed", lambda plan, arguments: 1.0 if plan.tile == 3 else 2.0)


def test_a_resumed_run_takes_the_choices_and_has_the_same_bits(tmp_path, slow_but_one, monkeypatch):
    first = RunFolder(tmp_path / "whole")
    first.write_config({})
    trainer, data = trainer_in(first), loader()
    trainer.fit(data, epochs=1)
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    trainer.fit(data, epochs=1)
    saved = json.loads((tmp_path / "stopped/tuning.json").read_text())
    assert [c["arguments"][1] for c in saved["choices"]] == ["int64[20]", "int64[13]"]
    assert [(c["threads"], c["tile"]) for c in saved["choices"]] == [(2, 3), (2, 3)]

    monkeypatch.setattr(tuning, "fastest", None)  # whoever measures fails
    run = RunFolder.open(tmp_path / "stopped")
    resumed = trainer_in(run)
    resumed.resume()
    resumed.fit(loader(), epochs=1)
    assert parameters(resumed) == parameters(trainer)
    assert json.loads((run.path / "tuning.json").read_text()) == saved


def test_new_choices_of_a_resumed_run_are_added(tmp_path, slow_but_one):
    run = RunFolder(tmp_path / "run")
    trainer_in(run).step(*images(0, 20))
    run.write_config({})
    trainer_in(RunFolder.open(run.path)).step(*images(0, 16))
    sizes = [choice["arguments"][1] for choice in RunFolder.open(run.path).tuning()]
    assert sizes == ["int64[20]", "int64[16]"]
    (run.path / "tuning.json").write_text('{"choices": [1]}')
    with pytest.raises(CheckpointError, match="a list of choices"):
        trainer_in(RunFolder.open(run.path))


def test_tuning_learns_nothing(tmp_path):
    """Real times: one step has moved parameters once, whatever was measured."""
    x, y = images(0, 20)
    tuned = trainer_in(None)
    tuned.step(x, y)
    tg.manual_seed(1)
    model = small_network()
    rule = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    Trainer(model, rule, tg.softmax_cross_entropy, progress=False).step(x, y)
    for a, b in zip(tuned.model.state_dict().values(), model.state_dict().values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_tune_without_compile():
    model = small_network()
    with pytest.raises(ArgumentError, match="tune: expected False where no plan is made"):
        rule = tg.optim.SGD(model.parameters(), lr=0.1)
        Trainer(model, rule, tg.mse_loss, compile=False, tune=True)


def test_recipe(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "numba_cnn", "--set", "compile=false", "--set", "tune=true"]) == 2
    assert "tune: expected False where no plan is made" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    recipe = recipes.get("numba_cnn")
    config = recipe.settings(
        {"filters": 2, "batch_size": 700, "epochs": 1, "compile": True, "tune": True}
    )
    recipe.train(config, RunFolder("run"), None, False, Progress(lines=False, bar=False))
    choices = RunFolder.open("run").tuning()
    assert {choice["arguments"][0][:12] for choice in choices} == {"float32[700,", "float32[594,"}
