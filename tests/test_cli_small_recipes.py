"""The command with recipes that train in a moment: what they print, write and refuse."""

import json
import re
from pathlib import Path

import pytest

from tests.test_cli import fails
from tinygraph.cli import main

NAMES = ["perceptron", "linear_regression", "xor_mlp"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


@pytest.mark.second
@pytest.mark.parametrize(
    "arguments, said, last",
    [
        (["perceptron"], "nand: converged, epoch 6 was without a mistake", "test accuracy 1.0000"),
        (["perceptron", "--set", "function=xor"], "xor: does not converge", "test accuracy 0.5000"),
        (["linear_regression"], "the gradient stopped after 145 epochs", "test rmse 0.1983"),
        (["xor_mlp"], "xor: solved, J 0.00997", "test accuracy 1.0000"),
    ],
)
def test_what_a_training_says(capsys, arguments, said, last):
    assert main(["train", *arguments, "--run", "run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(said) for line in lines), lines
    assert lines[-1] == last
    files = {str(path) for path in Path("run").rglob("*") if path.is_file()}
    assert {line.removeprefix("wrote ") for line in lines if line.startswith("wrote ")} == files
    assert {
        f"run/{name}"
        for name in (
            "config.json",
            "environment.json",
            "log.jsonl",
            "parameters.safetensors",
            "result.json",
            "graph.svg",
            "report.html",
            "steps.html",
        )
    } <= files
    assert main(["evaluate", "run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last
    assert "--best: expected a run with validation data" in fails(
        capsys, ["evaluate", "run", "--best"]
    )


def test_json_is_one_object(capsys):
    assert main(["train", "perceptron", "--set", "function=xor", "--run", "run", "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert err == "" and answer["test"] == {"accuracy": 0.5}
    assert answer["settings"]["function"] == "xor" and len(answer["epochs"]) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_writes_nothing(capsys, name):
    assert main(["train", name, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "nothing was written" in out and re.search(r"a batch: .*, loss \d", out)
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    "options, words",
    [
        (["--batch-size", "2"], "batch_size: expected one of its settings"),
        (["--duration", "1m"], "no such setting"),
        (["--data-dir", "."], "--data-dir: expected no such option"),
        (["--download"], "this recipe makes its own data"),
        (["--set", "epoch=1"], "did you mean 'epochs'"),
        (["--set", "epochs=0"], "expected a whole number from 1"),
    ],
)
def test_options_that_these_recipes_lack(capsys, options, words):
    for name in NAMES:
        assert words in fails(capsys, ["train", name, *options])
    assert not Path("runs").exists()


@pytest.mark.second
def test_a_run_of_a_moment_is_not_resumed(capsys):
    assert main(["train", "perceptron", "--run", "run"]) == 0
    capsys.readouterr()
    before = {path: path.read_bytes() for path in Path("run").iterdir()}
    words = "perceptron, which trains in a moment. Way out: start a new run"
    assert words in fails(capsys, ["train", "--resume", "run"])
    assert {path: path.read_bytes() for path in Path("run").iterdir()} == before


@pytest.mark.second
def test_profile_of_a_step_on_the_cpu(capsys):
    assert main(["profile", "xor_mlp", "--device", "cpu", "--steps", "2", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    shares = sum(row["share"] for row in answer["ops"])
    assert shares == pytest.approx(1) and answer["ops"][-1]["op"] == "outside of ops"
    assert answer["files"] == ["profile-xor_mlp-cpu.svg"] and Path(answer["files"][0]).exists()


def test_a_learning_rate_that_is_too_large(capsys):
    words = "lr: expected below 0.03983"
    assert words in fails(capsys, ["train", "linear_regression", "--lr", "0.05"], code=1)
    assert not list(Path("runs").iterdir())  # no empty run stays behind
