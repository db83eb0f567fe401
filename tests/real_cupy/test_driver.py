"""The driver that needs no GPU: it refuses what CUDA refuses, and says what was called."""

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.test_rehearsed_cuda import OPTIMIZERS, batches, network
from tests.real_cupy import plugin
from tinygraph.cuda import Kernel, Out, nvrtc
from tinygraph.cuda.reading.source import Source

# Not cudaEventSynchronize: pinned memory waits for the copy of some steps before, long done.
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpy")
NUMBERS = """
#include "prelude.cuh"
template <typename T> __global__ void __launch_bounds__(192) turned(const T* x, T* y) {
    __shared__ T tile[192];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
"""


@pytest.fixture
def cupy(machine):
    return machine.cupy


def loaded(cupy, source=NUMBERS, name="turned<float>"):
    """A kernel of CuPy's, and what NVRTC says of it."""
    source = Source.read(source)
    (compiled,) = nvrtc.compile(source, [name], "sm_90")
    module = cupy.cuda.Module()
    module.load(compiled.cubin)
    return module.get_function(compiled.symbol), nvrtc.resources(source, name, "sm_90"), module


def refused(machine, error, what):
    """Within it CuPy raises an error of CUDA, and the driver has written down why."""
    return Refused(machine, error, what)


class Refused:
    def __init__(self, machine, error, what):
        self.machine, self.what = machine, what
        driver = machine.cupy.cuda.driver.CUDADriverError
        errors = machine.cupy.cuda.runtime.CUDARuntimeError, driver
        self.raises = pytest.raises(errors, match=error)

    def __enter__(self):
        return self.raises.__enter__()

    def __exit__(self, *error):
        done = self.raises.__exit__(*error)
        told = self.machine.violations()
        assert any(self.what in words for words in told), told
        return done


# ---- kernels


def test_a_kernel_takes_what_nvrtc_says(cupy):
    function, said, _ = loaded(cupy)
    driver = cupy.cuda.driver
    attributes = {
        said.registers: driver.CU_FUNC_ATTRIBUTE_NUM_REGS,
        said.shared: driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        192: driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    }
    for number, attribute in attributes.items():
        assert driver.funcGetAttribute(attribute, function.ptr) == number
    assert said.shared == 4 * 192 and said.registers > 3


@pytest.mark.parametrize(
    "grid, block, shared, what",
    [
        ((1, 1, 1), (256, 1, 1), 0, "a block that is too large"),  # than its launch bound
        ((1, 70_000, 1), (192, 1, 1), 0, "a grid that is too large"),
        ((1, 1, 1), (192, 1, 1), 48 * 1024, "more shared memory than was asked for"),
    ],
)
def test_a_launch_is_held_to_the_gpu(machine, cupy, grid, block, shared, what):
    function, _, _ = loaded(cupy)
    x = cupy.empty(192, "f4")
    with refused(machine, "cudaErrorInvalidValue", what):
        function(grid, block, (x, x), shared)


def test_a_kernel_of_many_registers_needs_a_small_block(machine, cupy):
    sums = "".join(f"float s{i} = x[{i}]; " for i in range(160))
    uses = "".join(f"y[{i}] = s{i} * s{159 - i}; " for i in range(160))
    text = f"__global__ void many(volatile float* x, volatile float* y) {{ {sums} {uses} }}"
    function, said, _ = loaded(cupy, text, "many")
    assert said.registers > 64
    x = cupy.empty(160, "f4")
    with refused(machine, "cudaErrorLaunchOutOfResources", "too many registers"):
        function((1, 1, 1), (1024, 1, 1), (x, x))


def test_a_kernel_that_the_cubin_has_not(machine, cupy):
    _, _, module = loaded(cupy)
    with refused(machine, "cudaErrorSymbolNotFound", "no such kernel"):
        module.get_function("another")


def test_what_is_no_cubin_is_not_loaded(machine, cupy):
    with refused(machine, "cudaErrorInvalidKernelImage", "no cubin"):
        cupy.cuda.Module().load(
            b"GIF89a, which is a picture and much longer than a head of ELF...."
        )


def test_an_exception_in_a_launch_is_the_launchs_error(cupy):
    kernel = Kernel("__global__ void far(float* y) { y[1ll << 40] = 1; }", "far")
    with pytest.raises(Exception, match=r"cudaErrorIllegalAddress: .*far"):
        kernel(1, 1, Out(cupy.empty(4, "f4")))


def test_another_kernel_of_cupys_is_refused_by_name(cupy):
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="cupy_add.* is not simulated"):
        cupy.empty(3, "f4") + cupy.empty(3, "f4")


# ---- memory


def test_a_copy_beside_the_devices_memory(machine, cupy):
    host = np.zeros(4096, "u1")
    runtime = cupy.cuda.runtime
    at = runtime.malloc(1024)
    with refused(machine, "cudaErrorInvalidValue", "writes outside"):
        runtime.memcpy(at, host.ctypes.data, 4096, runtime.memcpyHostToDevice)
    runtime.free(at)
    with refused(machine, "cudaErrorInvalidValue", "reads outside"):
        runtime.memcpy(host.ctypes.data, at, 16, runtime.memcpyDeviceToHost)
    with refused(machine, "cudaErrorInvalidValue", "freed what cudaMalloc has not given"):
        runtime.free(at)


def test_a_launch_on_memory_that_was_freed(cupy):
    function, _, _ = loaded(cupy)
    y, at = cupy.empty(192, "f4"), cupy.cuda.runtime.malloc(1024)
    cupy.cuda.runtime.free(at)
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="x is no memory of the device"):
        function((1, 1, 1), (192, 1, 1), (np.uint64(at), y))


# ---- captures


@pytest.fixture
def stream(cupy):
    return cupy.cuda.Stream(non_blocking=True)


def test_waiting_spoils_a_capture(machine, cupy, stream):
    with stream:
        stream.begin_capture()
        with refused(machine, "cudaErrorStreamCaptureUnsupported", "waited for a stream"):
            stream.synchronize()
        with pytest.raises(Exception, match="cudaErrorStreamCaptureInvalidated"):
            stream.end_capture()


def test_an_event_from_outside_spoils_a_capture(machine, cupy, stream):
    event = cupy.cuda.get_current_stream().record()
    stream.begin_capture()
    with refused(machine, "cudaErrorStreamCaptureIsolation", "an event from outside"):
        stream.wait_event(event)
    with pytest.raises(Exception, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()


def test_the_legacy_stream_cannot_be_used_while_one_captures_that_waits_for_it(machine, cupy):
    x, blocking = cupy.empty(4, "f4"), cupy.cuda.Stream()
    blocking.begin_capture()
    with refused(machine, "cudaErrorStreamCaptureImplicit", "the legacy stream in a capture"):
        x[...] = x.copy()
    blocking.end_capture()


def test_a_graph_writes_no_memory_that_was_freed(machine, cupy, stream):
    runtime = cupy.cuda.runtime
    at = runtime.malloc(64)
    stream.begin_capture()
    runtime.memsetAsync(at, 0, 64, stream.ptr)
    graph = stream.end_capture()
    graph.launch(stream)
    runtime.free(at)
    with refused(machine, "cudaErrorIllegalAddress", "writes memory that was freed"):
        graph.launch(stream)


# ---- the plugin


def test_a_test_that_breaks_a_rule_fails(machine, cupy):
    """Though nothing was raised that it has not caught."""
    run = plugin.pytest_runtest_call(None)
    next(run)
    with pytest.raises(Exception, match="cudaErrorInvalidValue"):
        cupy.cuda.runtime.free(4096)
    with pytest.raises(pytest.fail.Exception, match="CUDA does not allow: freed what cudaMalloc"):
        run.send(None)


# ---- what tinygraph asks of the driver


def waits(machine):
    calls = machine.calls()
    return sum(calls[name] for name in WAITS)


def test_a_trainers_step_waits_once(machine):
    model = network("cuda")
    sgd = OPTIMIZERS["sgd"](model.parameters())
    trainer = tg.training.Trainer(model, sgd, tg.softmax_cross_entropy, progress=False)
    for batch in batches():
        machine.forget_calls()
        loss, right = trainer.step(*batch)
        assert np.isfinite(loss) and 0 <= right <= 5
    assert waits(machine) == 1


def test_a_replay_is_one_launch_of_the_driver(machine):
    model = network("cuda")
    adam = OPTIMIZERS["adam"](model.parameters())

    @tg.cuda.capture
    def learn(x, t):
        loss = tg.softmax_cross_entropy(model(x), t)
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss

    for batch in batches(4):
        machine.forget_calls()
        learn(*batch)
    calls = machine.calls()
    assert calls["cudaGraphLaunch"] == 1 and calls["cuLaunchKernel"] == 0
    assert not any(
        calls[name] for name in WAITS if name != "cudaEventSynchronize"
    )  # of pinned memory
    assert calls["cudaMalloc"] == 0
