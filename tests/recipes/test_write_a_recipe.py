"""The page "Write a recipe": its file and its commands as printed; and recipes that are none."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest

from tests.test_cli import fails
from tests.test_cli_resume import stop_after
from tinygraph import recipes
from tinygraph.base.errors import ArgumentError
from tinygraph.cli import main
from tinygraph.training import RunFolder

PAGE = (Path(__file__).parents[2] / "docs/recipes/write_a_recipe.md").read_text(encoding="utf-8")
(FILE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^    \$ tinygraph (.*)$", PAGE, re.MULTILINE)
SHORT = ["train", "moons.py", "--epochs", "3", "--run", "run"]


@pytest.fixture(autouse=True)
def the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("moons.py").write_text(FILE)


@pytest.mark.second
def test_the_commands_of_the_page_in_order(capsys):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    assert len(FILE.splitlines()) <= 65 and len(COMMANDS) == 6
    said = {}
    for command in COMMANDS:
        assert main(shlex.split(command)) == 0, command
        said[command] = capsys.readouterr().out.splitlines()
    rehearsed, trained, resumed, evaluated, shown, profiled = said.values()
    assert any("a batch: float32 (20, 2) and int64 (20,)" in line for line in rehearsed)
    assert float(re.fullmatch(r"test accuracy (\S+)", trained[-1])[1]) > 0.98
    assert "epoch 40/40" in " ".join(trained)
    assert trained[-1] == resumed[-1] == evaluated[-1]  # nothing was left to learn
    for name in ("graph.svg", "report.html", "curves.svg"):
        assert f"wrote runs/moons/{name}" in trained and f"wrote runs/moons/{name}" in shown
    assert any(line.split()[:1] == ["linear_tanh"] for line in profiled)  # of the plan
    config = RunFolder.open("runs/moons").config
    assert (config["recipe"], config["settings"]["hidden"]) == ("two_moons", 32)
    assert "lower" in Path("runs/moons/report.html").read_text()  # the classes of the predictions


@pytest.mark.second
def test_a_stopped_run_goes_on_with_the_same_bits(monkeypatch, capsys):
    assert main([*SHORT[:-1], "whole"]) == 0
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        assert main(SHORT) == 128 + signal.SIGINT
    (command,) = re.findall(r"resume with `tinygraph (.*)`", capsys.readouterr().err)
    assert main(shlex.split(command)) == 0
    for name in ("parameters.safetensors", "best/parameters.safetensors", "result.json"):
        assert Path("run", name).read_bytes() == Path("whole", name).read_bytes()


def test_a_run_folder_runs_no_code(capsys):
    assert main([*SHORT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"] == "two_moons"
    Path("moons.py").write_text("raise SystemExit('it was run')")
    for command in (["evaluate", "run"], ["show", "run"], ["train", "--resume", "run"]):
        error = fails(capsys, command)
        assert "the file of its recipe two_moons, which was " in error and "name it" in error
    config = json.loads(Path("run/config.json").read_text())
    del config["file"]
    Path("run/config.json").write_text(json.dumps({**config, "recipe": "moons.py"}))
    assert "recipes: name: expected one of" in fails(capsys, ["evaluate", "run"])


def test_another_file_than_that_of_the_run(capsys):
    assert main(SHORT) == 0
    Path("other.py").write_text(FILE.replace('"two_moons"', '"suns"'))
    capsys.readouterr()
    assert "the file of its recipe two_moons" in fails(
        capsys, ["evaluate", "run", "--recipe", "other.py"]
    )


def test_settings_of_a_file_are_those_of_any_recipe(capsys):
    command = ["train", "moons.py"]
    assert "did you mean 'hidden'" in fails(capsys, [*command, "--set", "hiden=3"])
    assert "whole number" in fails(capsys, [*command, "--set", "samples=many"])
    assert "--data-dir: expected no such option" in fails(capsys, [*command, "--data-dir", "."])
    assert not Path("runs").exists()


HALF = "from tinygraph.recipes import Recipe\nclass Half(Recipe):\n    name = 'half'\n"


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1", "expected one class that is a Recipe, got none"),
        (FILE + HALF, "expected one class that is a Recipe, got TwoMoons, Half"),
        (HALF, "Half: expected a summary, got none"),
        ("import no_such_library", "line 1: ModuleNotFoundError"),
        ("x = 1\ny = z", "line 2: NameError: name 'z'"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_files_that_are_no_recipe(capsys, text, words):
    Path("moons.py").write_text(text)
    assert words in fails(capsys, SHORT)
    assert not Path("run").exists()


def test_no_such_file():
    with pytest.raises(
        ArgumentError, match=r"absent\.py: expected a Python file, got no such file"
    ):
        recipes.find("absent.py")
