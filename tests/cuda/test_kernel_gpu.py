"""Launches of cupy arrays, with a module in CuPy's place that records the calls.

Nothing here runs on a GPU: the tests say what CuPy is asked to do.
"""

import subprocess
import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.recorder import SCALE, kernel_of, refused
from tinygraph import device
from tinygraph.cuda import Kernel, Out
from tinygraph.errors import DeviceError, KernelCompileError, KernelLaunchError


class FakeArray:
    def __init__(self, size=8, dtype="f4", gpu=0, pointer=4096):
        self.dtype, self.size = np.dtype(dtype), size
        self.shape, self.strides = (size,), (self.dtype.itemsize,)
        self.flags = types.SimpleNamespace(c_contiguous=True)
        self.data = types.SimpleNamespace(ptr=pointer)
        self.device = FakeGpu(gpu)


class FakeGpu(nullcontext):
    entered = []

    def __init__(self, number):
        self.id = number

    def __enter__(self):
        self.entered.append(self.id)


class FakeFunction:
    def __init__(self):
        self.launches, self.max_dynamic_shared_size_bytes = [], 0

    def __call__(self, grid, block, args, *, shared_mem):
        self.launches.append((grid, block, args, shared_mem))


class CompileException(Exception):
    pass


@pytest.fixture
def cupy(monkeypatch):
    module = types.ModuleType("cupy")
    module.ndarray = FakeArray
    module.built, module.error, module.available = [], None, True
    module.cuda = types.SimpleNamespace(
        is_available=lambda: module.available,
        compiler=types.SimpleNamespace(CompileException=CompileException),
    )

    class RawModule:
        def __init__(self, **options):
            module.built.append((options, self))

        def get_function(self, name):
            if module.error:
                raise CompileException(module.error)
            self.name, self.function = name, FakeFunction()
            return self.function

    module.RawModule = RawModule
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(FakeGpu, "entered", [])
    return module


def test_arrays_of_cupy_launch_through_a_raw_module(cupy, loaded):
    kernel = Kernel(SCALE, "scale<float>", {"TILE": 16})
    x, y = FakeArray(), FakeArray()
    kernel((4, 2), 256, x, Out(y), 2, np.int64(1000), shared=1024)
    ((options, module),) = cupy.built
    assert options["code"] == SCALE and options["name_expressions"] == ["scale<float>"]
    assert "-std=c++17" in options["options"] and "-DTILE=16" in options["options"]
    assert f"-I{tg.cuda.kernel.KERNELS}" in options["options"]
    ((grid, block, args, shared),) = module.function.launches
    assert (grid, block, shared) == ((4, 2, 1), (256, 1, 1), 1024)
    assert args[:2] == (x, y)
    assert [type(a) for a in args[2:]] == [np.float32, np.int32] and args[2:] == (2, 1000)
    assert FakeGpu.entered == [0] and not loaded.loads


def test_a_gpu_compiles_once_and_each_gpu_for_itself(cupy):
    kernel = Kernel(SCALE, "scale<float>")
    for gpu in (0, 0, 1, 1):
        kernel(1, 32, FakeArray(gpu=gpu), FakeArray(gpu=gpu), 1.0, 8)
    assert len(cupy.built) == 2 and FakeGpu.entered == [0, 0, 1, 1]


def test_large_shared_memory_is_asked_for(cupy):
    kernel = kernel_of("const float* x")
    kernel(1, 32, FakeArray(), shared=48 * 1024)
    function = cupy.built[0][1].function
    assert function.max_dynamic_shared_size_bytes == 0
    kernel(1, 32, FakeArray(), shared=100 * 1024)
    kernel(1, 32, FakeArray(), shared=64 * 1024)
    assert function.max_dynamic_shared_size_bytes == 100 * 1024


def test_errors_of_cupys_compiler_show_the_source_line(cupy):
    cupy.error = '/tmp/tmp1x/ab.cubin.cu(6): error: identifier "alpha" is undefined\n'
    with pytest.raises(KernelCompileError, match=r"   6 \|     if \(i < n\) y\[i\]"):
        Kernel(SCALE, "scale<float>")(1, 32, FakeArray(), FakeArray(), 1.0, 8)


def test_refuses_arrays_of_two_devices(cupy, loaded, scale, arrays):
    message = refused(scale, FakeArray(), arrays[1], 1.0, 8)
    assert "arrays of one device, got numpy for y and cupy for x" in message
    with pytest.raises(KernelLaunchError, match=r"arrays of one GPU, got GPUs \[0, 1\]"):
        scale(1, 32, FakeArray(gpu=0), FakeArray(gpu=1), 1.0, 8)


def test_refuses_arrays_of_cupy_as_it_does_numpys(cupy, loaded, scale):
    x, y = FakeArray(dtype="f8"), FakeArray()
    assert "x: expected an array of float32" in refused(scale, x, y, 1.0, 8)
    y.flags.c_contiguous = False
    assert "y: expected a C-contiguous" in refused(scale, FakeArray(), y, 1.0, 8)
    vector = kernel_of("const float4* x")
    assert "8 bytes past" in refused(vector, FakeArray(pointer=4104))


def test_the_checker_runs_on_the_host_only(cupy, loaded, scale):
    with pytest.raises(KernelLaunchError, match=r"x\.get\(\)"):
        scale.check(1, 32, FakeArray(), FakeArray(), 1.0, 8)


def test_without_a_gpu_or_without_cupy_the_ways_out_are_named(cupy, monkeypatch):
    cupy.available = False
    with pytest.raises(DeviceError, match="expected an NVIDIA GPU.*emulator"):
        device.cupy()
    monkeypatch.setitem(sys.modules, "cupy", None)  # the import fails
    with pytest.raises(DeviceError, match=r"'\.\[cuda12\]'.*cuda13.*emulator"):
        device.cupy()


def test_importing_tinygraph_imports_neither_cupy_nor_the_emulator():
    text = (
        "import sys, tinygraph; print([m for m in sys.modules if m.partition('.')[0] == 'cupy' or "
        "m in ('tinygraph.cuda.emulator.native', 'tinygraph.cuda.nvrtc.compiling')])"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
