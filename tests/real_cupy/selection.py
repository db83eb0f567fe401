"""A plugin of pytest: of all tests, those that mean device "cuda".

Here (plugin.py) and on a GPU (benchmarks/gpu/real_cuda.py) the same ones run, on the real CuPy:

- what asks for `kernel_device`, with "cuda": the kernel contracts of the ops, the gallery
- what asks for `rehearsed_cuda`: plans, captures, training, feeding; but for the tests with the
  mark `stand_in`, which look into the stand-in for CuPy itself

A test that takes any `device` does not mean a GPU: it may hand an array to numpy.
"""

from __future__ import annotations

from typing import Any


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out all others."""
    others = [item for item in items if not means_cuda(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if means_cuda(item)]


def means_cuda(item: Any) -> bool:
    """Whether a test is about device "cuda", whichever CuPy is behind it."""
    if item.get_closest_marker("stand_in"):
        return False
    values = getattr(item, "callspec", None)
    on_cuda = values is not None and values.params.get("kernel_device") == "cuda"
    return on_cuda or "rehearsed_cuda" in getattr(item, "fixturenames", ())
