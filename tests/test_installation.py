"""What the documentation and the messages tell people to install is there to be installed."""

import re
import tomllib
from pathlib import Path

import pytest

from tinygraph.cli.machine import EXTRAS
from tinygraph.errors import install

ROOT = Path(__file__).parents[1]
EXTRAS_THERE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
FILES = [
    path
    for pattern in ("*.md", "*.toml", "*.py", ".ci/*", "Makefile", "**/*.md", "**/*.py", "**/*.cu*")
    for path in ROOT.glob(pattern)
    if not {".venv", "build", "dist", "_build", "generated"} & {*path.parts[len(ROOT.parts) :]}
]
# A release, under either name: there is none.
RELEASED = re.compile(r"(?:pip|uv)\s+(?:install|add)\b[^\n|;]{0,60}(?<![\w/.])tinygraph(?!\w)")
FROM_A_CHECKOUT = re.compile(r"-e(?:ditable)?\s+['\"]\.\[([\w,]+)\]['\"]")
CALLED = re.compile(r"\binstall\([\"'](\w+)[\"']\)")


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("pip install tinygraph", True),
        ("pip install 'tinygraph-nn[plot]'", True),
        ("uv pip\ninstall --upgrade tinygraph-nn", True),
        ("pip install -e '.[plot]'", False),
        ("pip install ziglang, which tinygraph_pytest needs", False),
    ],
)
def test_the_search_for_releases(text, released):
    assert bool(RELEASED.search(text)) is released


def test_nobody_is_sent_to_a_release():
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in FILES
        if path != Path(__file__)
        for match in RELEASED.finditer(path.read_text())
    ]
    assert len(FILES) > 500 and not found


def test_the_extras_that_are_named_are_there():
    named = set(EXTRAS)
    for path in FILES:
        text = path.read_text()
        named |= {extra for match in FROM_A_CHECKOUT.findall(text) for extra in match.split(",")}
        named |= {*CALLED.findall(text)}
    assert {"data", "plot", "test", "fast", "cuda12", "cuda13"} <= named <= EXTRAS_THERE.keys()
    assert install("data") == "pip install -e '.[data]'"
