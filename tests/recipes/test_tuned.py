"""The setting `tune` of every recipe that compiles: its record in the run folder."""

import json
import shutil
from dataclasses import fields

import pytest

from tests.recipes.test_splice_mlp import made_sequences
from tests.test_cli import fails
from tinygraph import recipes
from tinygraph.plan import tuning
from tinygraph.recipes import splice_mlp, srcnn
from tinygraph.training import Progress, RunFolder

SMALL = {
    "linear_regression": {"points": 8, "epochs": 3},
    "splice_mlp": {"hidden": (3,), "epochs": 1},
    "srcnn": {
        "n1": 2,
        "n2": 2,
        "f1": 3,
        "f2": 1,
        "f3": 3,
        "crop": 15,
        "crops": 32,
        "epochs": 1,
        "pictures": "at hand",
    },
    "vgg224": {"widths": (2,), "batch_size": 2},
    "xor_mlp": {"epochs": 3},
}
WHOLE = {  # batches that no plan cuts, and why
    "splice_mlp": "no argument carries several samples",
    "vgg224": "batch_norm writes one of its inputs",
}


@pytest.fixture(autouse=True)
def small_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(splice_mlp, "splice", made_sequences)
    monkeypatch.setattr(srcnn, "cache_folder", lambda: tmp_path / "cache")


def trained(name, run, **settings):
    recipe = recipes.get(name)
    config = recipe.settings({**SMALL[name], "compile": True, **settings})
    recipe.train(config, run, None, False, Progress(lines=False, bar=False))
    return json.loads((run.path / "tuning.json").read_text())["choices"]


@pytest.mark.filterwarnings("ignore:batch norm is training on:UserWarning")
@pytest.mark.parametrize("name", SMALL)
def test_the_choice_lies_in_the_run_folder(name, monkeypatch):
    if name == "srcnn":
        pytest.importorskip("PIL", reason="needs Pillow")
        from tests.recipes.test_srcnn import made_pictures

        monkeypatch.setattr(srcnn, "at_hand", made_pictures)
    run = RunFolder("run")
    choices = trained(name, run, tune=True)
    for choice in choices:
        assert choice["reason"] == WHOLE.get(name, "")
        assert (choice["threads"], choice["tile"]) == (1, 0) or not choice["reason"]
        assert bool(choice["milliseconds"]) == (not choice["reason"])
    if not recipes.get(name).resumable:
        return
    before = run.load_parameters()
    shutil.rmtree(run.checkpoints)  # as if it had been stopped early: it begins again
    monkeypatch.setattr(tuning, "fastest", None)  # whoever measures fails
    resumed = RunFolder.open("run")
    assert trained(name, resumed, tune=True) == choices
    same = resumed.load_parameters()
    assert {k: a.tobytes() for k, a in same.items()} == {k: a.tobytes() for k, a in before.items()}


def test_tune_without_compile_is_one_line(capsys, tmp_path):
    configs = {name: recipe.config for name, recipe in recipes.recipes.items()}
    compiling = [n for n, c in configs.items() if any(f.name == "compile" for f in fields(c))]
    others = {"char_gpt", "lstm_text", "numba_cnn", "resnet_cifar", "vgg_cifar"}
    assert set(compiling) == {*SMALL, *others}
    for name in compiling:
        error = fails(capsys, ["train", name, "--set", "tune=true", "--set", "compile=false"])
        assert f"{name}: tune: expected False where no plan is made" in error
    assert not list(tmp_path.iterdir())
