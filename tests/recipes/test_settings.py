"""Settings from text, by the type of their field."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Optional

import pytest

from tinygraph.errors import ArgumentError
from tinygraph.recipes.settings import plain_type, read_setting


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
        ("anything", "1", "anything: expected a setting that a text can give"),
        ("cuont", "1", "no such setting. Way out: did you mean 'count'"),
        ("computed", "1", "no such setting"),
    ],
)
def test_a_text_that_does_not_fit(name, text, words):
    with pytest.raises(ArgumentError) as error:
        read_setting("demo", Config, name, text)
    assert str(error.value).startswith(f"demo: {name}: ") and words in str(error.value)


def test_the_type_without_none():
    assert plain_type(Config, "limit") == (int, True)
    assert plain_type(Config, "count") == (int, False)
    assert plain_type(Config, "either") == (int | str, False)
