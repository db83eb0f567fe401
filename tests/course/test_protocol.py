"""`tinygraph course protocol`: a prediction is sealed before, and figures are computed again."""

import json
import os
import re

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import nn
from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.cli import main
from tinygraph.data import Draws, degrade, digits
from tinygraph_course.checking.steps import module
from tinygraph_course.commands import figures
from tinygraph_course.commands.protocol import verified
from tinygraph_course.content.exercise import find

PROJECTS = module(find("projects").solution + find("projects").harness)
SEED, HELD, SCALE = 3, 2, 2
ABOUT = f"""project = "srcnn"
prediction = "one decibel better than bicubic interpolation"
seed = {SEED}
scale = {SCALE}
held = {HELD}
epochs = 3
parameters = "srcnn.safetensors"
"""
BOTH = """project = "numba_cnn"
seeds = [0, 1, 2]
[accuracy]
prediction = "a tenth of the digits, since nothing was learnt"
[time]
prediction = "half of the time for half of the filters"
"""


class Pictures:
    """Made-up pictures, as many as a collection would have."""

    def __init__(self, name):
        self.seed, self.count = {"T91": (0, 6), "Set5": (1, 3)}[name]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        draw = np.random.default_rng((self.seed, i))
        waves = draw.uniform(0.2, 0.9, (3, 2, 1, 1)) * np.indices((25, 31))
        return (0.5 + 0.4 * np.sin(waves.sum(1))).astype(np.float32), 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / ".course").mkdir()
    monkeypatch.setattr(figures, "super_resolution", lambda name, data_dir: Pictures(name))
    return tmp_path


def network(detail):
    """An SRCNN that gives its middle pixel, and so much of what lies around it less."""
    model = PROJECTS.SRCNN(1, 1)
    for p in model.parameters():
        p.value[...] = 0
    model.conv1.weight.value[0, 0, 4, 4] = model.conv2.weight.value[...] = 1
    model.conv3.weight.value[0, 0, 1:4, 1:4] = -detail / 8
    model.conv3.weight.value[0, 0, 2, 2] = 1 + detail
    return model


def measured(model, name, chosen):
    """Mean PSNR with the functions of the exercise: by the network, and bicubic."""
    found = []
    for i in chosen:
        rgb = Pictures(name)[i][0]
        y = PROJECTS.luma(rgb).astype(np.float32)[None]
        low, high = degrade(SCALE)(y, None, Draws(0, 0, 0))
        H, W = high.shape[1:]
        with tg.no_grad():
            out = model(np.pad(low[0], 6, mode="edge")[None, None]).numpy()[0, 0]
        found.append([PROJECTS.psnr(y, rgb[:, :H, :W], SCALE) for y in (out, low[0])])
    return np.mean(found, axis=0)


def with_result(folder, detail=0.3, about=ABOUT, **changes):
    """The protocol of a network, sealed and then with its results; its rows by what they are of."""
    file, model = folder / "a.toml", network(detail)
    file.write_text(about)
    verified(file)
    tg.save(model.state_dict(), folder / "srcnn.safetensors")
    held = np.random.default_rng(SEED).permutation(6)[:HELD]
    best, (psnr, bicubic) = measured(model, "T91", held)[0], measured(model, "Set5", range(3))
    said = {"validation": [best - 2, best, best - 1], "epoch": 2, "psnr": psnr, "bicubic": bicubic}
    said = {key: np.array(value).tolist() for key, value in {**said, **changes}.items()}
    lines = [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    file.write_text("\n".join([about, "[result]", *lines]))
    return {row.what: row for row in verified(file)}


def test_what_was_measured_holds(folder):
    rows = with_result(folder)
    assert [row.state for row in rows.values()] == ["ok"] * len(rows) == ["ok"] * 7, rows
    assert rows["Set5"].why.startswith("+")


@pytest.mark.parametrize(
    ("changes", "what", "why"),
    [
        ({"psnr": 50.0}, "result.psnr", "you say 50.0"),
        ({"bicubic": 20.0}, "result.bicubic", "you say 20.0"),
        ({"validation": [60.0, 61.0, 1.0]}, "validation", "you say 61.0"),
        ({"validation": [60.0, 61.0]}, "result.validation", "2 figures for 3 epochs"),
        ({"epoch": 3}, "epoch", "2 is the best one on the validation; you say 3"),
        ({"validation": [True]}, "result.validation", "expected a list of float"),
        ({"epoch": "2"}, "result.epoch", "expected int, got '2'"),
    ],
)
def test_a_figure_that_is_another_one(changes, what, why, folder):
    row = with_result(folder, **changes)[what]
    assert row.state == "wrong" and why in row.why


def test_a_network_that_is_worse_than_bicubic(folder):
    rows = with_result(folder, detail=-0.8)
    wrong = [row.what for row in rows.values() if row.state != "ok"]
    assert wrong == ["Set5"] and rows["Set5"].why.startswith("-")


def test_a_prediction_that_came_afterwards(folder):
    with_result(folder)
    file = folder / "a.toml"
    whole = file.read_text()
    file.write_text(whole.replace("one decibel", "two decibel"))
    assert "was changed after" in next(r for r in verified(file) if r.state == "wrong").why
    file.write_text(re.sub(r"held = \d+", "held = 1", whole))
    assert "was changed after" in next(r for r in verified(file) if r.state == "wrong").why
    (folder / "b.toml").write_text(whole)
    assert verified(folder / "b.toml")[0].why.startswith("was not sealed")
    os.utime(folder / "srcnn.safetensors", (1e9, 1e9))
    file.write_text(whole)
    assert ("wrong", "is older than the seal") in [(r.state, r.why) for r in verified(file)]


def test_a_test_that_is_measured_again(folder):
    with_result(folder)
    row = with_result(folder, detail=0.35)["test data"]
    assert row.state == "wrong" and "2 sets of parameters" in row.why


def test_without_the_pictures_nothing_is_claimed(folder, monkeypatch):
    def absent(name, data_dir):
        raise DatasetError("super_resolution", name, "a folder", "none", "name one")

    monkeypatch.setattr(figures, "super_resolution", absent)
    rows = with_result(folder)
    assert rows["figures"].state == "open" and "Way out: name one" in rows["figures"].why
    assert "Set5" not in rows and "test data" not in rows


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"conv1.weight": np.zeros(3)}, "expected conv1.weight, conv1.bias"),
        (
            PROJECTS.SRCNN(1, 1).state_dict() | {"conv2.weight": np.zeros((1, 1, 3, 3), "f4")},
            "9, 1",
        ),
        (None, "srcnn.safetensors"),
    ],
)
def test_parameters_of_something_else(state, why, folder):
    with_result(folder)
    file = folder / "srcnn.safetensors"
    file.unlink()
    if state is not None:
        tg.save(state, file)
    row = next(row for row in verified(folder / "a.toml") if row.what == "parameters")
    assert row.state == "wrong" and why in row.why


def test_two_experiments_with_digits(folder):
    file, right = folder / "b.toml", []
    file.write_text(BOTH)
    assert [row.state for row in verified(file)] == ["ok", "open"]
    images, labels = digits("test")[:]
    for seed in range(3):
        tg.manual_seed(seed)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10)
        )
        tg.save(model.state_dict(), folder / f"{seed}.safetensors")
        right.append(float((model(images).numpy().argmax(1) == labels).mean()))
    text = f"""{BOTH}
[result]
accuracy = {right}
parameters = ["0.safetensors", "1.safetensors", "2.safetensors"]
[result.seconds]
few = [1.0, 3.0, 2.0, 9.0, 2.5]
many = [4.0, 4.0, 4.0, 5.0, 6.0]
[result.medians]
few = 2.5
many = 4.0
"""
    file.write_text(text)
    assert all(row.state == "ok" for row in verified(file)), verified(file)
    for old, new, what in (
        ("few = 2.5", "few = 3.5", "result.medians.few"),
        (f"[{right[0]},", "[0.99,", "accuracy, seed 0"),
        ("few = [1.0, 3.0, 2.0, 9.0, 2.5]", "few = [2.5]", "result.seconds.few"),
        ("seeds = [0, 1, 2]", "seeds = [0, 1, 1]", "seeds"),
        (", 2]", "]", "result.accuracy"),
    ):
        file.write_text(text.replace(old, new, 1))
        assert what in [row.what for row in verified(file) if row.state == "wrong"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("project = ", "as TOML"),
        (f"a = {'[' * 100_000}", "as TOML"),
        ('project = "vgg"', 'expected "srcnn" or "numba_cnn", got vgg'),
    ],
)
def test_no_protocol(text, words, folder):
    (folder / "a.toml").write_text(text)
    with pytest.raises(ArgumentError, match=words):
        verified(folder / "a.toml")
    with pytest.raises(ArgumentError, match="16_projects.md"):
        verified(folder / "none.toml")


def test_what_is_missing_is_told_before_anything_else(folder):
    (folder / "a.toml").write_text('project = "srcnn"\nseed = 1.5\nprediction = "good"\n')
    rows = {row.what: row.why for row in verified(folder / "a.toml")}
    assert rows["scale"] == "is missing" and rows["seed"] == "expected int, got 1.5"
    assert rows["prediction"].startswith("expected a sentence")
    assert not (folder / ".course" / "predictions.json").exists()


def test_the_command(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "a.toml").write_text(ABOUT)
    assert main(["course", "protocol", "a.toml"]) == 1
    assert "what is stated - sealed" in capsys.readouterr().out
    with_result(folder)
    assert main(["course", "protocol", "a.toml"]) == 0
    assert capsys.readouterr().out.endswith("all figures hold\n")


@pytest.mark.parametrize("project", ["srcnn", "numba_cnn"])
def test_the_protocols_of_the_text_are_ones(project, folder):
    """As they stand there, put together, with as many figures as they say."""
    lines = [line[4:] for line in find("projects").text.splitlines() if line.startswith("    ")]
    begin = lines.index(f'project = "{project}"')
    ends = [i for i, line in enumerate(lines) if line.startswith("project =") and i > begin]
    file = folder / "a.toml"
    text = "\n".join(lines[begin : min(ends, default=len(lines))])
    file.write_text(text.partition("[result]")[0])
    assert [row.state for row in verified(file)] == ["ok", "open"]
    file.write_text(text)
    rows = {row.what: row.why for row in verified(file)}
    said = "3 figures for 40 epochs" if project == "srcnn" else "0.safetensors"
    assert said in " ".join(rows.values()) and "is missing" not in rows.values()
