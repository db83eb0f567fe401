"""Settings from text, by the type of their field."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Optional, TypedDict

import numpy as np
import pytest

import tinygraph as tg
from tinygraph import recipes
from tinygraph.base import free_memory
from tinygraph.base.errors import ArgumentError, DeviceError
from tinygraph.cli import main
from tinygraph.recipes import settings
from tinygraph.recipes.settings import Count, Positive, Share, fit, read_setting, type_of


class Normal(TypedDict):
    mean: float
    deviation: Positive


@dataclass
class Config:
    count: int = 1
    rate: float = 0.1
    name: str = "a"
    fixed: bool = False
    limit: int | None = None
    older: Optional[float] = None  # noqa: UP045 - other recipes may write it so
    mode: Literal["online", "batch"] = "online"
    rates: tuple[float, ...] = (0.1,)
    pair: tuple[int, float] = (1, 0.5)
    words: list[str] = field(default_factory=list)
    either: int | str = 0
    file: Path | None = None
    anything: Any = None
    nested: dict[str, float] = field(default_factory=dict)
    normal: Normal | None = None
    computed: float = field(default=0.0, init=False)


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("count", "-3", -3),
        ("rate", "1e-3", 0.001),
        ("rate", "2", 2.0),
        ("name", "none", "none"),
        ("name", "", ""),
        ("fixed", "true", True),
        ("fixed", "False", False),
        ("limit", "None", None),
        ("limit", "7", 7),
        ("older", "none", None),
        ("older", "0.5", 0.5),
        ("mode", "batch", "batch"),
        ("rates", "0.1, 0.01,1e-3", (0.1, 0.01, 0.001)),
        ("rates", "", ()),
        ("pair", "2,3", (2, 3.0)),
        ("words", "a,b", ["a", "b"]),
        ("either", "3", 3),
        ("either", "x", "x"),
        ("file", "a/b", Path("a/b")),
        ("file", "none", None),
    ],
)
def test_a_text_is_read_by_the_type_of_its_field(name, text, value):
    found = read_setting("demo", Config, name, text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("count", "2.5", "expected a whole number, got '2.5'"),
        ("count", "none", "expected a whole number, got 'none'"),
        ("rate", "nan", "expected a finite number"),
        ("rate", "fast", "expected a finite number, got 'fast'"),
        ("fixed", "1", "expected true or false"),
        ("limit", "x", "expected a whole number or none, got 'x'"),
        (
            "mode",
            "bach",
            "expected one of online, batch, got 'bach'. Way out: did you mean 'batch'",
        ),
        ("rates", "0.1,,2", "expected numbers with commas between them"),
        ("pair", "1", "expected 2 whole numbers with commas between them"),
        ("pair", "1,2,3", "expected 2 "),
        ("nested", "{}", "nested: expected a setting that a text can give"),
        ("normal", "{}", "normal: expected a setting that a text can give"),
        ("anything", "1", "anything: expected a setting that a text can give"),
        ("cuont", "1", "no such setting. Way out: did you mean 'count'"),
        ("computed", "1", "no such setting"),
    ],
)
def test_a_text_that_does_not_fit(name, text, words):
    with pytest.raises(ArgumentError) as error:
        read_setting("demo", Config, name, text)
    assert str(error.value).startswith(f"demo: {name}: ") and words in str(error.value)


@pytest.mark.parametrize(
    "name, value, same",
    [
        ("count", np.int64(3), 3),
        ("rate", 2, 2.0),
        ("rates", [1, 0.5], (1.0, 0.5)),  # JSON has lists
        ("pair", [2, 3], (2, 3.0)),
        ("limit", None, None),
        ("mode", "batch", "batch"),
        ("fixed", True, True),
        ("anything", {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_from_python_or_json(name, value, same):
    found = fit("demo", name, type_of(Config, name), value)
    assert found == same and type(found) is type(same)


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("count", True, "expected a whole number, got True"),
        ("count", "3", "expected a whole number, got '3'"),
        ("count", 2.0, "expected a whole number, got 2.0"),
        ("rate", math.nan, "expected a finite number, got nan"),
        ("rate", 10**400, "expected a finite number"),
        ("fixed", 1, "expected true or false, got 1"),
        ("rates", "0.1", "expected numbers with commas between them, got '0.1'"),
        ("pair", [1], "expected 2 whole numbers with commas between them, got [1]"),
        ("mode", None, "expected one of online, batch, got None"),
        (
            "normal",
            {"mean": 0},
            "expected an object of mean (a finite number), deviation (a finite",
        ),
        (
            "normal",
            {"mean": 0, "deviation": 0},
            "deviation (a finite number above 0) or none, got {'mean'",
        ),
    ],
)
def test_a_value_that_does_not_fit(name, value, words):
    with pytest.raises(ArgumentError) as error:
        fit("demo", name, type_of(Config, name), value)
    assert str(error.value).startswith(f"demo: {name}: ") and words in str(error.value)


def test_usual_names_have_limits_where_their_type_says_none():
    """`epochs: int` is at least 1 in every recipe; a type that says more is left alone."""

    @dataclass
    class Recipe:
        epochs: int | None = None
        lr: float = 0.1
        duration: float | None = None
        seed: tuple[int, ...] = ()

    assert type_of(Recipe, "lr") == Positive and type_of(Recipe, "epochs") == Count | None
    assert type_of(Recipe, "seed") == tuple[int, ...]
    assert read_setting("demo", Recipe, "duration", "1.5m") == 90
    for name, text in (("epochs", "0"), ("lr", "0"), ("duration", "soon"), ("duration", "0s")):
        with pytest.raises(ArgumentError, match=f"demo: --{name}: expected .*, got '{text}'"):
            read_setting("demo", Recipe, name, text, f"--{name}")


@pytest.mark.parametrize("value, good", [(0, True), (0.99, True), (1, False), (-0.1, False)])
def test_a_share(value, good):
    if good:
        assert fit("demo", "momentum", Share, value) == value
        return
    with pytest.raises(ArgumentError, match="a number from 0 to below 1"):
        fit("demo", "momentum", Share, value)


@pytest.mark.parametrize("recipe", recipes.recipes.values(), ids=recipes.recipes)
def test_every_setting_is_described(recipe, capsys):
    """Each has a meaning in words, and its default is what --set would take for it."""
    assert main(["recipes", recipe.name]) == 0
    lines = capsys.readouterr().out.splitlines()
    defaults = vars(recipe.config())
    shown = {line.split()[0]: line for line in lines[3:]}
    assert list(shown) == settings.names_of(recipe.config)
    for name, meaning in settings.meanings(recipe.config).items():
        assert meaning and meaning in shown[name]
        assert settings.describe_type(settings.type_of(recipe.config, name)) in shown[name]
        text = settings.as_text(defaults[name])
        if not isinstance(defaults[name], dict):
            read = settings.read_setting(recipe.name, recipe.config, name, text)
            assert read == defaults[name]


def test_an_unknown_recipe_is_not_described(capsys):
    assert main(["recipes", "numba_cn"]) == 2
    assert "did you mean 'numba_cnn'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "recipes", "profile"])
def test_a_file_that_is_absent_is_named(command, capsys, tmp_path):
    path = tmp_path / "absent.py"
    assert main([command, str(path)]) == 2
    expected = f"recipe: {path}: expected a Python file, got no such file"
    assert expected in capsys.readouterr().err


def test_sizes_are_held_against_what_there_is(tmp_path, capsys):
    for shards in ("17", "1000000", "2147483647"):
        given = ["--set", "data=digits", "--set", "batch_size=16", "--shards", shards]
        assert main(["train", "numba_cnn", *given, "--run", str(tmp_path / "run")]) == 2
        error = capsys.readouterr().err
        assert f"shards: expected at most 16, the samples of a batch, got {shards}" in error
    assert not (tmp_path / "run").exists()
    for name, setting in (
        ("char_gpt", "layers"),
        ("lstm_text", "layers"),
        ("vgg224", "convolutions"),
    ):
        with pytest.raises(
            ArgumentError, match=f"{setting}: expected a whole number from 1 to 1000"
        ):
            recipes.get(name).settings({setting: 2**31 - 1})


def test_a_layer_larger_than_the_memory_is_refused_before_it_is_filled(monkeypatch):
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 2**28)
    with pytest.raises(DeviceError, match=r"memory for.*268,435,456 are free"):
        tg.nn.Linear(2**13, 2**12)
    assert tg.nn.Linear(2**10, 2**10).weight.shape == (2**10, 2**10)
