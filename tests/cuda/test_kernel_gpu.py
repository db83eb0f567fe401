"""Launches of cupy arrays, with a module in CuPy's place that records the calls.

Nothing here runs on a GPU: the tests say what CuPy is asked to do.  The machine code is real.
"""

import subprocess
import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest

from tests.cuda.recorder import SCALE, kernel_of, refused
from tinygraph.base.errors import DeviceError, KernelCompileError, KernelLaunchError
from tinygraph.cuda import Kernel, Out, nvrtc
from tinygraph.cuda.devices import cupy as import_cupy
from tinygraph.cuda.nvrtc import library
from tinygraph.cuda.nvrtc.library import architectures


class FakeArray:
    def __init__(self, size=8, dtype="f4", gpu=0, pointer=4096):
        self.dtype, self.size = np.dtype(dtype), size
        self.shape, self.strides = (size,), (self.dtype.itemsize,)
        self.flags = types.SimpleNamespace(c_contiguous=True)
        self.data = types.SimpleNamespace(ptr=pointer, device_id=gpu)
        self.device = FakeGpu(gpu)


class FakeGpu(nullcontext):
    entered, capabilities = [], {0: "90", 1: "75"}

    def __init__(self, number):
        self.id = number

    compute_capability = property(lambda self: self.capabilities[self.id])

    def __enter__(self):
        self.entered.append(self.id)


class FakeModule:
    """Machine code on one GPU."""

    made, refuses = [], None

    def load(self, cubin):
        if self.refuses:
            raise CUDADriverError(self.refuses)
        self.cubin, self.gpu = cubin, FakeGpu.entered[-1]
        self.made.append(self)

    def get_function(self, symbol):
        self.symbol, self.function = symbol, FakeFunction()
        return self.function


class FakeFunction:
    def __init__(self):
        self.launches, self.ptr, self.most = [], id(self), 0

    def __call__(self, grid, block, args, shared_mem=0):
        self.launches.append((grid, block, args, shared_mem))


class CUDADriverError(RuntimeError):
    pass


def set_attribute(pointer, attribute, value):
    """8 is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
    (function,) = [m.function for m in FakeModule.made if m.function.ptr == pointer]
    assert attribute == 8
    function.most = value


@pytest.fixture
def cupy(monkeypatch):
    module = types.ModuleType("cupy")
    module.ndarray = FakeArray
    module.available, module.gpus = True, 2
    module.cuda = types.SimpleNamespace(
        is_available=lambda: module.available,
        Device=FakeGpu,
        Module=FakeModule,
        driver=types.SimpleNamespace(
            CUDADriverError=CUDADriverError,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            funcSetAttribute=set_attribute,
        ),
        runtime=types.SimpleNamespace(
            CUDARuntimeError=CUDADriverError,
            driverGetVersion=lambda: 12040,
            getDeviceCount=lambda: module.gpus,
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(FakeGpu, "entered", [])
    monkeypatch.setattr(FakeModule, "made", [])
    return module


def test_arrays_of_cupy_launch_machine_code_of_nvrtc(cupy, loaded):
    kernel = Kernel(SCALE, "scale<float>", {"TILE": 16})
    x, y = FakeArray(), FakeArray()
    kernel((4, 2), 256, x, Out(y), 2, np.int64(1000), shared=1024)
    (module,) = FakeModule.made
    (compiled,) = nvrtc.compile(kernel.source, ["scale<float>"], "sm_90")
    assert module.cubin == compiled.cubin and module.symbol == compiled.symbol
    ((grid, block, args, shared),) = module.function.launches
    assert (grid, block, shared) == ((4, 2, 1), (256, 1, 1), 1024)
    assert args[:2] == (x, y)
    assert [type(a) for a in args[2:]] == [np.float32, np.int32] and args[2:] == (2, 1000)
    assert set(FakeGpu.entered) == {0} and not loaded.loads


def test_an_array_of_no_elements_is_a_null_pointer_wherever_it_lies(cupy):
    kernel = Kernel(SCALE, "scale<float>")
    kernel(1, 32, FakeArray(size=0, pointer=4096), FakeArray(), 1.0, 8)
    (((_, _, args, _),),) = [m.function.launches for m in FakeModule.made]
    assert args[0] == 0 and type(args[0]) is np.uint64 and isinstance(args[1], FakeArray)


def test_each_gpu_has_machine_code_of_its_own_once(cupy):
    kernel = Kernel(SCALE, "scale<float>")
    for gpu in (0, 0, 1, 1):
        kernel(1, 32, FakeArray(gpu=gpu), FakeArray(gpu=gpu), 1.0, 8)
    assert [module.gpu for module in FakeModule.made] == [0, 1]
    assert [len(module.function.launches) for module in FakeModule.made] == [2, 2]
    found = [nvrtc.compile(kernel.source, [kernel.name], a)[0] for a in ("sm_90", "sm_75")]
    assert [module.cubin for module in FakeModule.made] == [made.cubin for made in found]


def test_with_one_gpu_a_launch_enters_no_device(cupy):
    cupy.gpus = 1
    kernel = Kernel(SCALE, "scale<float>")
    kernel(1, 32, FakeArray(), FakeArray(), 1.0, 8)
    FakeGpu.entered.clear()
    for _ in range(3):
        kernel(1, 32, FakeArray(), FakeArray(), 1.0, 8)
    (module,) = FakeModule.made
    assert not FakeGpu.entered and len(module.function.launches) == 4


def test_a_header_that_changes_changes_the_machine_code(cupy, tmp_path):
    header, path = tmp_path / "two.cuh", tmp_path / "k.cu"
    path.write_text('#include "two.cuh"\n__global__ void k(float* x) { *x = TWO; }\n')
    for text in ("2", "4", "2"):
        header.write_text(f"#define TWO {text}\n")
        Kernel(path, "k")(1, 1, FakeArray())
    one, other, again = (module.cubin for module in FakeModule.made)
    assert one == again != other


def test_denormal_numbers_are_kept(cupy, monkeypatch):
    """CuPy's own options end with -ftz=true; here the PTX says what each instruction does."""
    monkeypatch.setitem(FakeGpu.capabilities, 0, "990")
    with pytest.warns(RuntimeWarning, match="PTX"):
        Kernel(SCALE, "scale<float>")(1, 32, FakeArray(), FakeArray(), 1.0, 8)
    (module,) = FakeModule.made
    assert b"mul.f32" in module.cubin and b"ftz" not in module.cubin


def test_large_shared_memory_is_asked_for_once(cupy, monkeypatch):
    kernel = kernel_of("const float* x")
    kernel(1, 32, FakeArray(), shared=48 * 1024)
    (module,) = FakeModule.made
    assert module.function.most == 0
    kernel(1, 32, FakeArray(), shared=100 * 1024)
    assert module.function.most == 100 * 1024
    kernel(1, 32, FakeArray(), shared=64 * 1024)
    assert module.function.most == 100 * 1024


def test_errors_of_the_compiler_show_the_source_line(cupy):
    broken = Kernel(SCALE.replace("alpha * x[i]", "beta * x[i]"), "scale<float>")
    with pytest.raises(
        KernelCompileError, match=r'"beta" is undefined\n   6 \|     if \(i < n\) y'
    ):
        broken(1, 32, FakeArray(), FakeArray(), 1.0, 8)


def test_a_gpu_that_is_newer_than_nvrtc_gets_ptx(cupy, monkeypatch):
    monkeypatch.setitem(FakeGpu.capabilities, 0, "990")
    with pytest.warns(RuntimeWarning, match=r"does not know sm_990: the driver compiles PTX"):
        Kernel(SCALE, "scale<float>")(1, 32, FakeArray(), FakeArray(), 1.0, 8)
    (module,) = FakeModule.made
    newest = architectures()[-1]
    assert f".target sm_{newest}".encode() in module.cubin and module.function.launches


def test_a_gpu_that_is_older_than_all_that_nvrtc_knows(cupy, monkeypatch):
    monkeypatch.setitem(FakeGpu.capabilities, 0, "20")
    with pytest.raises(
        KernelCompileError, match=r"arch: expected sm_\d+ or later.*got sm_20.*older"
    ):
        Kernel(SCALE, "scale<float>")(1, 32, FakeArray(), FakeArray(), 1.0, 8)


def test_machine_code_that_the_driver_refuses(cupy, monkeypatch):
    monkeypatch.setattr(FakeModule, "refuses", "CUDA_ERROR_INVALID_IMAGE: device kernel image")
    words = r"machine code: expected what the driver of CUDA 12\.4 loads, got sm_90 from NVRTC \d.*"
    with pytest.raises(KernelCompileError, match=words + "INVALID_IMAGE.*nvidia-cuda-nvrtc-cu12"):
        Kernel(SCALE, "scale<float>")(1, 32, FakeArray(), FakeArray(), 1.0, 8)


def test_without_nvrtc_the_way_out_is_named(cupy, monkeypatch, tmp_path):
    monkeypatch.setenv("TINYGRAPH_CACHE", str(tmp_path))
    monkeypatch.setattr(library, "candidates", lambda: iter([]))
    for found in (library.library, library.architectures):
        found.cache_clear()
    with pytest.raises(KernelCompileError, match=r"libnvrtc of .*nvidia-cuda-nvrtc.*Way out: pip"):
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
        import_cupy()
    monkeypatch.setitem(sys.modules, "cupy", None)  # the import fails
    with pytest.raises(DeviceError, match=r"'\.\[cuda12\]'.*cuda13.*emulator"):
        import_cupy()


def test_importing_tinygraph_imports_neither_cupy_nor_the_emulator():
    text = (
        "import sys, tinygraph; print([m for m in sys.modules if m.partition('.')[0] == 'cupy' or "
        "m in ('tinygraph.cuda.emulator.native', 'tinygraph.cuda.nvrtc.compiling')])"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
