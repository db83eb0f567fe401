"""A plugin of pytest: the tests of device "cuda" on the real CuPy, without a GPU.

    python -m pytest -p tests.real_cupy.plugin ...

A test in which something was done that CUDA does not allow fails, also where the program went on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tests.real_cupy.install import SKIPPED, CannotBuild
from tests.real_cupy.launches import Launches
from tests.real_cupy.machine import start

try:
    MACHINE = start()
except CannotBuild as reason:
    pytest.exit(f"real CuPy without a GPU: {reason}", SKIPPED)
LAUNCHES = Launches(MACHINE)
COUNTED: Counter[str] = Counter()  # launches of this process and of the workers of xdist

pytest_plugins = ["tests.real_cupy.selection"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """A test that broke a rule of CUDA has failed."""
    MACHINE.violations()
    result = yield
    broken = MACHINE.violations()
    if broken:
        pytest.fail("CUDA does not allow: " + "; ".join(dict.fromkeys(broken)))
    return result


# ---- what was launched, in all processes


def pytest_sessionfinish(session: Any) -> None:
    """A worker of xdist hands its launches over, and the main process counts its own."""
    COUNTED.update(LAUNCHES.count)
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["launches"] = dict(LAUNCHES.count)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    COUNTED.update(getattr(node, "workeroutput", {}).get("launches", {}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests ran, and what they launched."""
    passed = len(terminalreporter.getreports("passed"))
    version = MACHINE.cupy.__version__
    terminalreporter.line(
        f"on CuPy {version} without a GPU: {passed} tests passed; {COUNTED.total():,} launches of "
        f"{len(COUNTED)} kernels"
    )
