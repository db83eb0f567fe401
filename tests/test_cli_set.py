"""The command with --set NAME=VALUE: any setting of a recipe, with the limits of its option."""

import json

import pytest

from tests.test_cli import fails
from tinygraph.cli import main
from tinygraph.training import RunFolder

DRY = ["train", "numba_cnn", "--dry-run", "--json"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)


def settings_of_a_dry_run(capsys, *options):
    assert main([*DRY, *options]) == 0
    return json.loads(capsys.readouterr().out)["settings"]


def test_a_setting_by_name_is_that_of_its_option(capsys):
    by_name = settings_of_a_dry_run(
        capsys,
        "--set",
        "filters=2",
        "--set",
        "lr=0.25",
        "--set",
        "duration=1m",
        "--set",
        "batch-size=50",
        "--set=seed=18446744073709551615",
    )
    by_option = settings_of_a_dry_run(
        capsys,
        "--filters",
        "2",
        "--lr",
        "0.25",
        "--duration",
        "1m",
        "--batch-size",
        "50",
        "--seed",
        "18446744073709551615",
    )
    assert by_name == by_option
    assert (by_name["filters"], by_name["lr"], by_name["duration"]) == (2, 0.25, 60.0)


def test_none_gives_what_the_recipe_takes_by_itself(capsys):
    assert settings_of_a_dry_run(capsys, "--set", "batch_size=none")["batch_size"] == 16


@pytest.mark.parametrize(
    "options, words",
    [
        (["--set", "filtres=3"], "no such setting. Way out: did you mean 'filters'"),
        (["--set", "filters=0"], "--set filters: expected a whole number from 1"),
        (["--set", "filters=none"], "--set filters: expected a whole number from 1"),
        (["--set", "lr=nan"], "--set lr: expected a finite number above 0"),
        (["--set", "device=emulater"], "--set device: expected one of cpu, emulator, cuda"),
        (["--set", "data=mnits"], "did you mean 'mnist'"),
        (["--set", "filters"], "expected NAME=VALUE"),
        (["--set", "=3"], "expected NAME=VALUE"),
        (["--filters", "2", "--set", "filters=2"], "filters was given twice"),
        (["--set", "lr=1", "--set", "lr=2"], "lr was given twice"),
        (["--sett", "lr=1"], "did you mean '--set'"),
    ],
)
def test_bad_assignments(capsys, options, words):
    assert words in fails(capsys, [*DRY, *options])


@pytest.mark.second
def test_a_resumed_run_refuses_another_value(capsys):
    assert (
        main(["train", "numba_cnn", "--set", "filters=1", "--set", "epochs=1", "--run", "run"]) == 0
    )
    assert RunFolder.open("run").config["settings"]["filters"] == 1
    capsys.readouterr()
    words = "filters is 1 there and 2 here"
    assert words in fails(capsys, ["train", "--resume", "run", "--set", "filters=2"])
    assert main(["train", "--resume", "run", "--set", "filters=1"]) == 0
