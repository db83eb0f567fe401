"""What is given to other machines: the files of both packages, and of exercises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tinygraph
import tinygraph_course
import tinygraph_course.exercises as exercises

_BESIDE = ("tinygraph_command.py", "tinygraph_pytest.py")


def program_files() -> Iterator[tuple[str, Path]]:
    """All files but those of exercises, with their names in a wheel."""
    for package in (tinygraph, tinygraph_course):
        folder = Path(str(package.__file__)).parent
        for path in files(folder):
            inner = path.relative_to(folder)
            if package is tinygraph or inner.parts[0] != "exercises":
                yield (Path(package.__name__) / inner).as_posix(), path
    yield "tinygraph_course/exercises/__init__.py", Path(str(exercises.__file__))
    for name in _BESIDE:
        path = Path(str(tinygraph.__file__)).parents[1] / name
        if path.exists():
            yield name, path


def is_ours(folder: Path) -> bool:
    """Whether an exercise belongs to the course, and is none that TINYGRAPH_EXERCISES names."""
    return folder.parent == Path(str(exercises.__file__)).parent


def files(folder: Path) -> Iterator[Path]:
    """The files below a folder, in order."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
