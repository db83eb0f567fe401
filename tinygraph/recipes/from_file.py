"""A recipe from a file that is not in the package: `tinygraph train my_recipe.py`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from typing import Any

from tinygraph.base import AnyPath, ArgumentError, TinygraphError, as_path
from tinygraph.recipes.recipe import Recipe

NEEDED = ("name", "summary", "config")


def from_file(path: AnyPath) -> Recipe:
    """The one recipe that a Python file defines; the file is run, and can import its neighbours.

    Raises
    ------
    ArgumentError
        There is no such file, it fails, or it defines no recipe, or several, or half of one.
    """
    path = as_path("recipe", "path", path)
    module = _loaded(path)
    found = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Recipe) and inspect.getmodule(cls) is module
    ]
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found) or "none"
        raise ArgumentError("recipe", str(path), "one class that is a Recipe", names)
    missing = [name for name in NEEDED if not hasattr(found[0], name)]
    if missing:
        raise ArgumentError(
            "recipe", f"{path}: {found[0].__name__}", f"a {missing[0]}", "none", "add it"
        )
    recipe = found[0]()
    recipe.file = str(path.resolve())
    return recipe


def run_file(path: Path) -> Any:
    """A Python file as a module of a name of its own; what it raises comes through."""
    spec = importlib.util.spec_from_file_location(f"file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ArgumentError("recipe", str(path), "a Python file", repr(path.name))
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[spec.name] = module  # where dataclasses look for the names of types
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def last_line(error: Exception, path: Path) -> traceback.FrameSummary | None:
    """The last line of a file that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return own[-1] if own else None


def _loaded(path: Path) -> Any:
    if not path.is_file():
        raise ArgumentError("recipe", str(path), "a Python file", "no such file", "check the path")
    try:
        return run_file(path)
    except TinygraphError:
        raise
    except Exception as error:
        line = last_line(error, path)
        where = f"line {line.lineno}: " if line else ""
        got = f"{where}{type(error).__name__}: {error}"
        raise ArgumentError("recipe", str(path), "a file that can be run", got) from error
