"""A plugin of pytest: the tests of device "cuda" on the real CuPy, without a GPU.

    python -m pytest -p tests.real_cupy.plugin ...

A test in which something was done that CUDA does not allow fails, also where the program went on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.real_cupy.build import SKIPPED, CannotBuild
from tests.real_cupy.launches import Launches
from tests.real_cupy.machine import start

try:
    MACHINE = start()
except CannotBuild as reason:
    pytest.exit(f"real CuPy without a GPU: {reason}", SKIPPED)
LAUNCHES = Launches(MACHINE)

pytest_plugins = ["tests.real_cupy.selection"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """A test that broke a rule of CUDA has failed."""
    before = MACHINE.library.machine_violations()
    result = yield
    broken = MACHINE.violations(before)
    if broken:
        pytest.fail("CUDA does not allow: " + "; ".join(dict.fromkeys(broken)))
    return result
