"""What tests of launches share: a kernel, a module that only records, refusals."""

import pytest

from tinygraph.base.errors import KernelLaunchError
from tinygraph.cuda import Kernel, Report

SCALE = """
template <typename T>
__global__ void __launch_bounds__(512) scale(const T* x, T* y, T alpha, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i];
}
"""

# Each C type, with the slot of struct that it is packed into.
SLOTS = {
    "bool": "?7x",
    "signed char": "b7x",
    "unsigned char": "B7x",
    "short": "h6x",
    "unsigned short": "H6x",
    "int": "i4x",
    "unsigned": "I4x",
    "long long": "q",
    "size_t": "Q",
    "float": "f4x",
    "double": "d",
}


class Recorder:
    """Stands for a compiled module and keeps what it was asked to run."""

    def __init__(self, findings=()):
        self.launches, self.checks, self.findings = [], [], list(findings)

    def launch(self, packed, *args):
        half = len(packed) // 2  # the sizes of arrays follow the arguments
        self.launches.append((packed[:half], *args))
        self.sizes = packed[half:]

    def check(self, arguments, grid, block, shared, profile, wish=None, timeout=None):
        self.checks.append((arguments, grid, block, shared, profile))
        return Report("scale<float>", self.findings)


def kernel_of(parameters, body="", name="k"):
    return Kernel(f"__global__ void {name}({parameters}) {{ {body} }}", name)


def refused(kernel, *args, grid=1, block=1, shared=0):
    """The message of a launch and of a check that must fail in the same way."""
    with pytest.raises(KernelLaunchError) as launch:
        kernel(grid, block, *args, shared=shared)
    with pytest.raises(KernelLaunchError) as check:
        kernel.check(grid, block, *args, shared=shared)
    assert str(launch.value) == str(check.value)
    return str(launch.value)
