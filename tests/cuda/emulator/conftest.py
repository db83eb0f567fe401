"""Fixtures of the emulator's tests."""

import pytest

from tests.cuda.emulator import launching


@pytest.fixture(autouse=True)
def soon(monkeypatch, following):
    """A kernel that spins is stopped soon."""
    monkeypatch.setenv("TINYGRAPH_KERNEL_TIMEOUT", "2")


@pytest.fixture(params=["fast", "checked"])
def launch(request):
    """Launch a right kernel both ways: plainly, and under the checker, which finds nothing."""
    return launching.run if request.param == "fast" else launching.clean
