"""What the documentation and the messages tell people to install is there to be installed."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import tinygraph
from tests import rooms
from tinygraph.base.errors import install
from tinygraph.cli.machine import EXTRAS

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS_THERE = PYPROJECT["project"]["optional-dependencies"]
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


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_cupy_comes_with_cudas_headers_and_nvrtc(extra):
    """CuPy 14 raises RuntimeError where it needs a kernel of its own and there are no headers.

    They and NVRTC come with its extra `ctk`, which 13 does not have: pip would leave it out.
    """
    (line,) = EXTRAS_THERE[extra]
    name, extras, oldest = re.fullmatch(r"([\w-]+)\[(\w+)\]>=([\d.]+)", line).groups()
    assert name == f"cupy-{extra}x" and extras == "ctk" and int(oldest.split(".")[0]) >= 14


# ---- targets --------------------------------------------------------------------------------


def required(*extras):
    """The distributions that tinygraph needs with some extras; those of other extras included."""
    found, waiting = set(), [*PYPROJECT["project"]["dependencies"]]
    waiting += [line for extra in extras for line in EXTRAS_THERE[extra]]
    for line in waiting:
        name, more = re.fullmatch(r"([\w-]+)(?:\[([\w,]+)\])?.*", line).groups()
        if name == PYPROJECT["project"]["name"]:
            waiting += [line for extra in more.split(",") for line in EXTRAS_THERE[extra]]
        found.add(name)
    return found


def imported(path):
    """The libraries that a module imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        yield from (name.partition(".")[0] for name in names)


@pytest.mark.second
def test_lint_and_docs_bring_what_the_package_imports():
    """mypy reads what stands beside the package; what it is told to do without is an exception."""
    overrides = PYPROJECT["tool"]["mypy"]["overrides"]
    without = {name.removesuffix(".*") for entry in overrides for name in entry["module"]}
    paths = [*rooms.FILES.values(), ROOT / "tinygraph_pytest.py"]
    libraries = {name for path in paths for name in imported(path)}
    ours = {"tinygraph", "tinygraph_command", "tinygraph_course"}
    libraries -= {*sys.stdlib_module_names, *ours, "elftools", "nvidia", "ziglang"} | without
    assert libraries == {"numpy", "pytest", "hypothesis"}
    assert libraries <= required("lint") and libraries <= required("docs")


def test_each_target_brings_an_extra_and_ci_runs_it():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split())
    needs = dict(re.findall(r"^([\w-]+): .*\.has-(\w+)$", text, re.M))
    assert set(needs.values()) <= EXTRAS_THERE.keys()
    of_cupy = {"test-cupy", "host-time"}  # in an environment of their own: tests/real_cupy
    assert targets - needs.keys() == {"help", "test-all", "gpu", "browser", "clean"} | of_cupy
    ci = (ROOT / ".ci/run").read_text()
    (run,) = re.findall(r"for target in (.*); do", ci)
    by_hand = {
        "test-all",
        "test-nightly",
        "dist",
        "ledger",
        "bench",
        "torture",
        "host-time",
        "gpu",
        "help",
        "clean",
    }
    assert {*run.split(), *re.findall(r"^make ([\w-]+)", ci, re.M)} == targets - by_hand


def test_the_version_that_is_cited_is_the_one_that_is_built():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    assert cited == tinygraph.__version__ and PYPROJECT["project"]["dynamic"] == ["version"]
