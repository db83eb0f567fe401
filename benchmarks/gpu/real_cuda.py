"""A plugin of pytest, for `make gpu`: device "cuda" of the tests on the real CuPy.

tests/conftest.py adds device "cuda" where TINYGRAPH_REHEARSE_CUDA is 1, and puts its stand-in for
CuPy in front of the path.  What is imported already stays: here the real one is.  Tests that look
into the stand-in itself are left out.
"""

from __future__ import annotations

from typing import Any

import cupy  # noqa: F401
import cupyx  # noqa: F401


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests of the stand-in."""
    of_stand_in = [item for item in items if "rehearsed_cuda" in item.fixturenames]
    if of_stand_in:
        config.hook.pytest_deselected(items=of_stand_in)
        items[:] = [item for item in items if "rehearsed_cuda" not in item.fixturenames]
