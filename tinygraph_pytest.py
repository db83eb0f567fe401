"""pytest plugin of tinygraph: fixtures, a marker and hypothesis profiles for tests of your own ops.

It is there in every pytest of an environment with tinygraph; no GPU is needed:

    import numpy as np
    import tinygraph as tg
    from tinygraph.cuda import Out

    def test_my_op(gradcheck):                  # fails where the gradient is wrong, or unknown
        gradcheck(MyOp(), [np.array([1.0, -2.0])])

    def test_on_every_device(tg_device):        # cpu, emulator, cuda: those that can run here
        assert tg.relu(tg.Tensor([-1.0], device=tg_device)).item() == 0

    def test_scale(kernel_check):               # a CUDA kernel under the checker
        x = np.arange(1000, dtype=np.float32)
        y = np.empty_like(x)
        kernel_check("scale.cu", "scale<float>", 4, 256, x, Out(y), 2.0, x.size)
        np.testing.assert_array_equal(y, 2 * x)

    @pytest.mark.gpu                            # skipped without a GPU, and the summary says why
    def test_on_a_gpu(): ...

`pytest --hypothesis-profile=tinygraph-dev` draws 20 examples a test, tinygraph-ci 200, the same at
every run; tinygraph-nightly 5000, others each time.

A module beside the package: pytest imports its plugins at every start, and importing anything from
inside the package would load numpy and all of tinygraph, for tests that need neither.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tinygraph.cuda import Report
    from tinygraph.testing import Report as GradcheckReport

PROFILES = {"tinygraph-dev": 20, "tinygraph-ci": 200, "tinygraph-nightly": 5000}  # examples


# ---- devices --------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs an NVIDIA GPU and CuPy; skipped without them")
    _offer_profiles(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `tg_device` runs once on each device that is here."""
    if "tg_device" in metafunc.fixturenames:
        metafunc.parametrize("tg_device", devices(), indirect=True)


@pytest.fixture
def tg_device(request: pytest.FixtureRequest) -> str:
    """The name of a device that can run here: "cpu", "emulator", "cuda"."""
    return str(request.param)


@functools.cache
def devices() -> list[str]:
    """The cpu, the emulator where there is a C++ compiler, cuda where there is a GPU."""
    return [name for name in ("cpu", "emulator", "cuda") if not missing(name)]


@functools.cache
def missing(device: str) -> str:
    """Why a device cannot be used here; empty if it can."""
    from tinygraph.base.errors import TinygraphError
    from tinygraph.engine.device import get_device  # not above: see the top of this file

    try:
        get_device(device)
        if device == "emulator":
            from tinygraph.cuda.emulator.compiler import find_compiler

            find_compiler()
    except TinygraphError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs a GPU is skipped without one."""
    if item.get_closest_marker("gpu") and missing("cuda"):
        pytest.skip(f"needs a GPU: {missing('cuda')}")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tests that did not run for want of a GPU are told, also without `-rs`."""
    skipped = terminalreporter.stats.get("skipped", [])
    needed = "Skipped: needs a GPU: "
    tests = [r for r in skipped if hasattr(r, "keywords")]  # a file that is skipped has none
    waiting = [r for r in tests if "gpu" in r.keywords and r.longrepr[2].startswith(needed)]
    if waiting:
        reason = waiting[0].longrepr[2].removeprefix(needed)
        count = "1 test" if len(waiting) == 1 else f"{len(waiting)} tests"
        terminalreporter.section("tests without a GPU", yellow=True)
        terminalreporter.line(f"{count} marked gpu did not run: {reason}")


# ---- hypothesis -----------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """A profile of ours that the command line names has to be there when hypothesis loads it."""
    _offer_profiles(early_config)


def _offer_profiles(config: pytest.Config) -> None:
    """Register the profiles where hypothesis is in use: imported already, or asked for by name."""
    asked = getattr(config.known_args_namespace, "hypothesis_profile", None)
    if "hypothesis" in sys.modules or asked in PROFILES:
        register_profiles()


def register_profiles() -> None:
    """Register the profiles with hypothesis, for a conftest.py that loads one by itself."""
    from hypothesis import settings  # not above: most tests do without

    for name, examples in PROFILES.items():
        settings.register_profile(
            name, max_examples=examples, deadline=None, derandomize=name != "tinygraph-nightly"
        )


# ---- gradients and kernels ------------------------------------------------------------------


@pytest.fixture(scope="session")
def gradcheck() -> Callable[..., GradcheckReport]:
    """`tg.testing.gradcheck`; a verdict "inconclusive" fails the test too."""
    return check_gradient


def check_gradient(
    fn: Callable[..., Any], inputs: Sequence[Any], wrt: Sequence[int] | None = None, seed: int = 0
) -> GradcheckReport:
    """Compare the gradients of `fn` with finite differences; arguments as `tg.testing.gradcheck`.

    Raises
    ------
    AssertionError
        A gradient is wrong (it is a GradcheckError), or nothing could be said: the inputs lie on
        kinks.
    """
    __tracebackhide__ = True  # pytest shows the line of the test and then the report
    from tinygraph import testing  # not above: see the top of this file
    from tinygraph.base.errors import GradcheckError

    try:
        report = testing.gradcheck(fn, inputs, wrt, seed)
    except GradcheckError as error:
        raise error.with_traceback(None) from None
    if not report.ok:
        raise AssertionError(f"gradcheck: {report.verdict}: {report.diagnosis}")
    return report


@pytest.fixture(scope="session")
def kernel_check() -> Callable[..., Report]:
    """Launch a CUDA kernel under tinygraph's checker; the test fails where it finds a mistake."""
    return check_kernel


def check_kernel(
    path_or_source: str | Path,
    name: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *args: Any,
    shared: int = 0,
    defines: Mapping[str, object] | None = None,
) -> Report:
    """Run one launch on the CPU under the checker; the arrays are written as usual.

    Parameters
    ----------
    path_or_source, name, defines
        As `tinygraph.cuda.Kernel` takes them: a `.cu` file or CUDA C++ itself, the function with
        its template arguments, macros.
    grid, block, *args, shared
        As in a launch; arrays of numpy.  `tinygraph.cuda.Out(y)` tells that every element of `y`
        has to be written and none may be read before.

    Returns
    -------
    Report
        Without findings.

    Raises
    ------
    AssertionError
        The checker found something: races, accesses out of bounds, barriers that not all threads
        reach, ...  The message is the report.
    KernelLaunchError, KernelCompileError
        The launch or the kernel itself is refused, or there is no C++ compiler.
    """
    __tracebackhide__ = True  # pytest shows the line of the test and then the report
    from tinygraph.base.errors import TinygraphError
    from tinygraph.cuda import Kernel  # not above: see the top of this file

    try:
        report = Kernel(path_or_source, name, defines).check(grid, block, *args, shared=shared)
    except TinygraphError as error:
        raise error.with_traceback(None) from None  # what is wrong is in the words of the error
    if not report.ok:
        raise AssertionError(report.text())
    return report
