"""Kernel.bind: a launch of which the last numbers are known is that of the kernel with all."""

import struct

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.recorder import SLOTS, kernel_of
from tinygraph.base.errors import KernelLaunchError
from tinygraph.cuda import InOut, Kernel, Out, checking, recording
from tinygraph.engine.device import get_device
from tinygraph.engine.running import Runner

FILL = """
__global__ void fill(float* x, float value, int n, int step) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value + step * i;
}"""


@pytest.fixture
def fill():
    return Kernel(FILL, "fill")


def test_it_is_the_launch_of_the_kernel(loaded, fill):
    x = np.zeros(5, np.float32)
    fill((2, 3), 32, x, 1.5, 5, 2, shared=64)
    bound = fill.bind((2, 3), 32, 5, 2, shared=64)
    bound(x, 1.5)
    bound(x, 1.5)
    fill.bind((2, 3), 32, shared=64)(x, 1.5, 5, 2)  # nothing is bound
    first, *others = loaded.launches
    assert others == [first] * 3


@pytest.mark.parametrize(("ctype", "slot"), SLOTS.items())
def test_numbers_are_cast_to_their_c_types(loaded, ctype, slot):
    kernel_of(f"float* x, {ctype} a").bind(1, 1, True)(np.zeros(1, np.float32))
    assert loaded.launches[0][0][8:] == struct.pack(f"<{slot}", 1)


def test_numbers_may_stand_before_arrays(loaded):
    x = np.zeros(3, np.float32)
    kernel_of("int a, float* x, int n").bind(1, 1, 3)(7, x)
    assert loaded.launches[0][0] == struct.pack("<i4xQi4x", 7, x.ctypes.data, 3)


@pytest.mark.parametrize(
    ("numbers", "got"),
    [
        ((2.5,), "step: expected an int (int), got the float 2.5"),
        ((2**31,), f"step: expected a number from {-(2**31)} to {2**31 - 1} (int), got {2**31}"),
        ((1.0, 2, 3, 4), "got 4 of them"),  # the first would be the array
        ((1,) * 5, "got 5 of them"),
    ],
)
def test_refuses_numbers_that_do_not_fit(loaded, fill, numbers, got):
    with pytest.raises(KernelLaunchError) as error:
        fill.bind(1, 32, *numbers)
    assert got in str(error.value)


@pytest.mark.parametrize(
    ("argument", "grid", "block", "shared"),
    [("grid", 0, 32, 0), ("block", 1, 2048, 0), ("shared", 1, 32, -1)],
)
def test_refuses_what_the_hardware_cannot_do(loaded, fill, argument, grid, block, shared):
    with pytest.raises(KernelLaunchError, match=f"fill: {argument}"):
        fill.bind(grid, block, 5, 1, shared=shared)


@pytest.mark.parametrize(
    ("x", "value", "words"),
    [
        (np.zeros(5), 1.0, "x: expected an array of float32"),
        (np.zeros(10, np.float32)[::2], 1.0, "x: expected a C-contiguous array"),
        (np.zeros(5, np.float32), "1", "value: expected a number"),
    ],
)
def test_refuses_arguments_in_every_call(loaded, fill, x, value, words):
    bound = fill.bind(1, 32, 5, 1)
    for _ in range(2):
        with pytest.raises(KernelLaunchError, match=words):
            bound(x, value)


def test_refuses_another_number_of_arguments(loaded, fill):
    with pytest.raises(KernelLaunchError) as error:
        fill.bind(1, 32, 5, 1)(np.zeros(5, np.float32))
    assert "expected 2 arguments before 2 that are bound (float* x, " in str(error.value)
    assert "got 1" in str(error.value)


def test_runners_see_all_of_it(fill):
    seen = []

    class Log(Runner):
        def launch(self, launch):
            seen.append(launch)
            self.below.launch(launch)

    x = np.zeros(5, np.float32)
    bound = fill.bind(1, 32, 5, 2)
    with Log():
        bound(InOut(x), 1.0)
    (launch,) = seen
    assert launch.kernel is fill and launch.bound is bound
    assert (launch.grid, launch.block, launch.shared) == ((1, 1, 1), (32, 1, 1), 0)
    assert isinstance(launch.args[0], InOut) and launch.args[1:] == (1.0, 5, 2)
    assert launch.values[0] is x and launch.values[1:] == [1.0, 5, 2]
    with recording() as launches:
        bound(Out(x), 3.0)
    assert launches[0].scalars == {"value": 3.0, "n": 5, "step": 2}
    np.testing.assert_array_equal(x, [3, 5, 7, 9, 11])


def test_the_checker_sees_it(fill):
    with checking(), pytest.raises(KernelLaunchError, match="out-of-bounds"):
        fill.bind(1, 32, 6, 1)(np.zeros(5, np.float32), 1.0)


def test_on_a_gpu_bound_numbers_arrive_as_the_others_do(kernel_device):
    """Each C type at the end of its range: a wrong width shows, and memory that is gone."""
    types = {
        "signed char": -(2**7), "unsigned char": 2**8 - 1, "short": -(2**15),
        "unsigned short": 2**16 - 1, "int": -(2**31), "unsigned": 2**32 - 1,
        "long long": -(2**63), "bool": True, "float": 1.5, "double": -0.1,
    }  # fmt: skip
    parameters = ", ".join(f"{ctype} a{i}" for i, ctype in enumerate(types))
    writes = " ".join(f"y[{i}] = a{i};" for i in range(len(types)))
    kernel = Kernel(f"__global__ void k(double* y, {parameters}) {{ {writes} }}", "k")
    device = get_device(kernel_device)
    bound = kernel.bind(1, 1, *types.values())
    for _ in range(3):
        y = device.zeros((len(types),), np.float64)
        bound(y)
        np.testing.assert_array_equal(device.to_numpy(y), [float(v) for v in types.values()])


def test_an_array_of_no_elements_is_a_null_pointer(kernel_device):
    kernel = Kernel("__global__ void k(const float* x, int* y, int n) { y[0] = n + !x; }", "k")
    device = get_device(kernel_device)
    bound, y = kernel.bind(1, 1, 5), device.zeros((1,), np.int32)
    whole = device.zeros((4,), np.float32)
    for x, expected in ((whole[4:], 6), (whole, 5), (whole[:0], 6)):
        bound(x, y)
        assert device.to_numpy(y)[0] == expected


def test_tensors_are_refused_with_the_way_out(fill):
    with pytest.raises(KernelLaunchError, match=r"pass its array: x\.value"):
        fill.bind(1, 32, 5, 1)(tg.Tensor([1.0]), 1.0)
