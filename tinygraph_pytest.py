"""pytest plugin of tinygraph: the fixture `kernel_check`, for tests of your own CUDA kernels.

It is there in every pytest of an environment with tinygraph; no GPU is needed:

    import numpy as np
    from tinygraph.cuda import Out

    def test_scale(kernel_check):
        x = np.arange(1000, dtype=np.float32)
        y = np.empty_like(x)
        kernel_check("scale.cu", "scale<float>", 4, 256, x, Out(y), 2.0, x.size)
        np.testing.assert_array_equal(y, 2 * x)

A module beside the package: pytest imports its plugins at every start, and importing anything from
inside the package would load numpy and all of tinygraph, for tests that need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tinygraph.cuda import Report


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
    from tinygraph.cuda import Kernel  # not above: see the top of this file
    from tinygraph.errors import TinygraphError

    try:
        report = Kernel(path_or_source, name, defines).check(grid, block, *args, shared=shared)
    except TinygraphError as error:
        raise error.with_traceback(None) from None  # what is wrong is in the words of the error
    if not report.ok:
        raise AssertionError(report.text())
    return report
