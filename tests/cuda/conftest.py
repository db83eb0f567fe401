"""Fixtures of the launch tests."""

import numpy as np
import pytest

from tests.cuda.mutation_run import Sandbox
from tests.cuda.recorder import SCALE, Recorder
from tinygraph.cuda import Kernel


@pytest.fixture
def loaded(request, monkeypatch):
    """The emulator's `load` replaced by a Recorder; `.loads` lists what was asked of it.

    In tests of refusals nothing may have reached it at the end.
    """
    from tinygraph.cuda.emulator import loading

    recorder, loads = Recorder(), []

    def load(source, signature, checked):
        loads.append((source, signature, checked))
        return recorder

    monkeypatch.setattr(loading, "load", load)
    recorder.loads = loads
    yield recorder
    if request.node.name.startswith("test_refuses"):
        assert not recorder.launches and not recorder.checks


@pytest.fixture
def scale():
    return Kernel(SCALE, "scale<float>")


@pytest.fixture
def arrays():
    return np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)


@pytest.fixture(scope="module")
def sandbox():
    """A process that tries mutants."""
    sandbox = Sandbox()
    yield sandbox
    sandbox.close()
