"""Imports run one way: no file needs, by way of others, itself."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import tinygraph

ROOT = Path(tinygraph.__file__).parent


def module(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported(path):
    """The files whose names a file takes where it is loaded, and in its annotations."""
    outside = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    for node in (inner for statement in outside for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else node.module


def test_no_file_needs_itself():
    needs = {
        name: {other for other in imported(path) if other in FILES and other != "tinygraph"}
        for name, path in FILES.items()
    }
    order = list(TopologicalSorter(needs).static_order())  # CycleError names a circle
    assert {*order, "tinygraph"} == {*FILES, "tinygraph"} and len(order) > 200
