"""The devices under test, and the parameters of the op contract."""

import functools
import gc
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import rehearsal
from tinygraph.cuda.emulator.checker import CheckedKernel
from tinygraph.engine.device import _DEVICES

DEVICES = ["cpu", "emulator"]
REHEARSAL = Path(__file__).parent / "fake_cupy"
# Looking for doctests there would import the stand-in, and every test would find a GPU.
collect_ignore = ["fake_cupy"]

# Tests of kernels run on device "cuda" too where a plugin has imported the real CuPy, see
# tests/real_cupy; and with TINYGRAPH_REHEARSE_CUDA=1, on a stand-in for CuPy.
REAL_CUPY = {n: m for n, m in sys.modules.items() if n in ("cupy", "cupyx")}
if REAL_CUPY:
    DEVICES.append("cuda")
elif os.environ.get("TINYGRAPH_REHEARSE_CUDA") == "1":
    sys.path.insert(0, str(REHEARSAL))
    DEVICES.append("cuda")

ON_A_GPU = bool(REAL_CUPY) and rehearsal.cupy() is None

# The first tier looks at a launch once.  To follow undefined values takes a build of each kernel by
# clang and ten times the time: that is for the second tier, and for tests of it, see `following`.
CheckedKernel.follows = os.environ.get("HYPOTHESIS_PROFILE") == "ci"


@pytest.fixture
def following(monkeypatch):
    """The checker as users have it: values that may be undefined are followed."""
    monkeypatch.setattr(CheckedKernel, "follows", True)


@pytest.fixture
def launched_once(monkeypatch):
    """In the second tier too: for what is counted, not found."""
    monkeypatch.setattr(CheckedKernel, "follows", False)


@pytest.fixture(params=["cpu", "emulator"])
def device(request):
    """The devices whose arrays are numpy's."""
    return request.param


@pytest.fixture(params=DEVICES)
def every_device(request):
    """Each device that can run ops on this machine, "cuda" too where there is a CuPy."""
    return request.param


@functools.cache
def some_cupy():
    """The modules of CuPy: the real one's, or the stand-in's, imported once.

    Once, for kernels keep what they compiled.
    """
    if REAL_CUPY:
        return REAL_CUPY
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REHEARSAL))
        import cupy
        import cupyx  # noqa: F401

        found = {n: m for n, m in sys.modules.items() if n.partition(".")[0] in ("cupy", "cupyx")}
        if "cuda" not in DEVICES:
            for name in found:
                del sys.modules[name]
    assert "rehearsal" in cupy.__version__
    return found


@pytest.fixture
def rehearsed_cuda(monkeypatch):
    """Device "cuda", without a limit of memory, on the stand-in for CuPy; the module cupy.

    It is the real CuPy where there is one, see tests/real_cupy; what looks into the stand-in itself
    has the mark `stand_in`.  On the stand-in a test fails if it has made CuPy wait, or launch a
    kernel of its own, where nobody sees it.
    """
    for name, module in some_cupy().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(_DEVICES, "cuda", raising=False)
    cupy = some_cupy()["cupy"]
    streams = None if REAL_CUPY else some_cupy()["cupy._stream"]
    if streams:
        streams.reset()
    gc.collect()
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    yield cupy
    pool.set_limit(size=0)
    _DEVICES.pop("cuda", None)
    if streams:
        hidden = list(streams.hidden)
        streams.reset()
        assert not hidden, hidden


@pytest.fixture
def as_the_emulator():
    """Demands of results of device "cuda" that they are the emulator's: the bits, where it runs.

    A GPU contracts other products and sums, and has its own exp and log: equal to rounding there.
    """

    def demand(got, want, what=""):
        if ON_A_GPU:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=what)
        else:
            np.testing.assert_array_equal(got, want, err_msg=what)

    return demand


def pytest_collection_finish(session):
    """What was collected stays until the end: no search for garbage walks through it any more.

    With 19,000 tests each `gc.collect()` took half a second, and hundreds of tests call it.
    """
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config, items):
    """Leave out the kernel tests of ops that have no kernel; test_registry.py counts those ops."""
    waiting = [item for item in items if _waits_for_a_kernel(item)]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if not _waits_for_a_kernel(item)]


def _waits_for_a_kernel(item):
    contract = getattr(item, "cls", None)
    of_kernel = item.name.startswith("test_kernel_") and hasattr(contract, "has_kernel")
    return of_kernel and not contract.has_kernel()


def pytest_generate_tests(metafunc):
    """Parameters of the contract: `kernel_device`, and `bad`, an entry of `bad_input`."""
    if "kernel_device" in metafunc.fixturenames:
        metafunc.parametrize("kernel_device", [name for name in DEVICES if name != "cpu"])
    if "bad" in metafunc.fixturenames and metafunc.cls is not None:
        metafunc.parametrize("bad", metafunc.cls.bad_input, ids=lambda case: case.name)


def pytest_terminal_summary(terminalreporter):
    """How many mutants of kernels were tried, and how many wait."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, words in report.user_properties:
            if name == "mutants":
                terminalreporter.line(words)
