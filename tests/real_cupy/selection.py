"""A plugin of pytest: of all tests, those that mean device "cuda".

Here (plugin.py) and on a GPU (benchmarks/gpu/suite.py) the same ones run, on the real CuPy:

- what asks for `kernel_device` or `every_device`, with "cuda": the kernel contracts of the ops, the
  gallery, the rules of optimisers
- what asks for `rehearsed_cuda`: plans, captures, training, feeding; but for the tests with the
  mark `stand_in`, which look into the stand-in for CuPy itself
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent  # the tests of the driver, which a GPU has not
# One of these stands in every file that has such a test; others need not be imported.
DEVICES = ("kernel_device", "every_device")
WORDS = ("OpContract", "rehearsed_cuda", *DEVICES)


def files(folder: Path) -> list[Path]:
    """The files of a folder that may have tests of device "cuda", whichever CuPy is behind it."""
    paths = [path for path in sorted(folder.rglob("test_*.py")) if HERE not in path.parents]
    return [path for path in paths if _speaks_of_it(path)]


def means_cuda(item: Any) -> bool:
    """Whether a test is about device "cuda", whichever CuPy is behind it."""
    if item.get_closest_marker("stand_in"):
        return False
    values = item.callspec.params if hasattr(item, "callspec") else {}
    on_cuda = any(values.get(name) == "cuda" for name in DEVICES)
    return on_cuda or "rehearsed_cuda" in getattr(item, "fixturenames", ())


def _speaks_of_it(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(word in text for word in WORDS)


# ---- hooks of pytest


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file without such tests; None leaves the question to others."""
    is_file = collection_path.suffix == ".py"
    return True if is_file and not _speaks_of_it(collection_path) else None


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out all other tests."""
    others = [item for item in items if not means_cuda(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if means_cuda(item)]
