"""Launches that do not fit a GPU, or that fail there: the error says which one, and why."""

import re

import numpy as np
import pytest

import tinygraph as tg
from tests.cuda.test_nvrtc import SPILLING
from tinygraph.base.errors import DeviceError, GraphError, KernelLaunchError
from tinygraph.cli import main
from tinygraph.cuda import Kernel, nvrtc

# As many registers as 64 values alive at once need; and shared memory of its own.
WIDE = SPILLING.replace("__launch_bounds__(1024, 2) ", "")
TILED = """
extern "C" __global__ void tiled(float* y, int last)
{
    __shared__ float own[1024];
    extern __shared__ float given[];
    own[threadIdx.x] = y[threadIdx.x];
    if (threadIdx.x == 0) given[last] = 3.0f;
    __syncthreads();
    y[threadIdx.x] = own[31 - threadIdx.x] + given[last];
}
"""
STRAY = 'extern "C" __global__ void stray(float* y, long long at) { y[at] = 1.0f; }'


def filled(cupy, *shape):
    return cupy.zeros(shape, np.float32)


@pytest.mark.stand_in
def test_a_block_whose_registers_do_not_fit(rehearsed_cuda):
    wide = Kernel(WIDE, "wide")
    found = nvrtc.resources(wide.source, "wide", "sm_90")
    x, y = filled(rehearsed_cuda, 64 * 1024), filled(rehearsed_cuda, 64 * 1024)
    assert found.registers > 64 and found.max_threads < 1024
    words = (
        f"wide: block: expected at most {found.max_threads} threads of {found.registers} registers "
        r"\(sm_90: 65536 for a block\), got 1024 x 1 x 1 = 1024. Way out: .*__launch_bounds__"
    )
    from cupy._module import launches

    before = len(launches)
    with pytest.raises(KernelLaunchError, match=words):
        wide(1, 1024, x, y, 1)
    assert len(launches) == before
    wide(1, found.max_threads, x, y, 1)
    assert len(launches) == before + 1


@pytest.mark.parametrize("dynamic, fits", [(44, True), (46, True), (223, True), (224, False)])
def test_shared_memory_of_the_kernel_and_of_the_launch_count_together(
    rehearsed_cuda, dynamic, fits
):
    """From 48 KiB on, both together, the driver has to be asked; 227 KiB are all there is."""
    tiled, y = Kernel(TILED, "tiled"), filled(rehearsed_cuda, 32)
    bytes_ = dynamic * 1024
    if fits:
        tiled(1, 32, y, bytes_ // 4 - 1, shared=bytes_)
        np.testing.assert_array_equal(y.get(), np.full(32, 3))
        return
    words = r"tiled: shared: expected at most 228352 bytes \(sm_90: 232448 for a block.*take 4096\)"
    with pytest.raises(KernelLaunchError, match=words + rf", got {bytes_}. Way out: .*tile"):
        tiled(1, 32, y, 0, shared=bytes_)


@pytest.mark.stand_in
def test_what_the_driver_refuses_is_told_with_the_launch(rehearsed_cuda, monkeypatch):
    from cupy._module import Function

    def refused(*_):
        raise rehearsed_cuda.cuda.driver.CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS: an earlier")

    monkeypatch.setattr(Function, "__call__", refused)
    words = "stray: launch: expected .* got grid 2 x 1 x 1, block 32 x 1 x 1, 64 bytes of shared"
    with pytest.raises(KernelLaunchError, match=words + ".*ILLEGAL_ADDRESS.*detect_anomaly"):
        Kernel(STRAY, "stray")(2, 32, filled(rehearsed_cuda, 4), 0, shared=64)


FAR = 1 << 36  # elements beyond an array


@pytest.mark.stand_in
@pytest.mark.parametrize("waits", ["numpy", "to_host", "synchronize"])
def test_an_illegal_access_is_told_to_whoever_waits_next(rehearsed_cuda, waits):
    x = tg.zeros(4, device="cuda")
    Kernel(STRAY, "stray")(1, 1, x.value, FAR)
    wait = {
        "numpy": x.numpy,
        "to_host": lambda: x.device.to_host(x.value),
        "synchronize": x.device.synchronize,
    }[waits]
    words = "cuda: wait: expected launches that ran to their end, got cudaErrorIllegalAddress"
    with pytest.raises(DeviceError, match=words + ".*Way out: .*detect_anomaly"):
        wait()


# On a GPU it is told too, and all that the process asks of the GPU after it fails.
@pytest.mark.stand_in
def test_under_detect_anomaly_an_illegal_access_is_told_by_its_launch(rehearsed_cuda):
    stray, y = Kernel(STRAY, "stray"), filled(rehearsed_cuda, 4)
    with tg.detect_anomaly():
        stray(1, 1, y, 0)
        words = "stray: launch: expected one that the GPU runs, got grid 1 x 1 x 1, block 1 x 1 x 1"
        with pytest.raises(KernelLaunchError, match=words + ".*: cudaError.*checker"):
            stray(1, 1, y, FAR)


@pytest.mark.second
def test_under_detect_anomaly_values_on_a_gpu_are_looked_at(rehearsed_cuda):
    with tg.detect_anomaly():
        x = tg.Tensor([1.0, -1.0], device="cuda", requires_grad=True)
        (tg.exp(x) * 2).sum().backward()
        with pytest.raises(GraphError, match=r"log made nan at \[1\] in its forward"):
            tg.log(x)


# ---- without a GPU ------------------------------------------------------------------------------


def test_the_checker_holds_a_launch_to_an_architecture():
    tiled, y = Kernel(TILED, "tiled"), np.zeros(32, np.float32)
    assert tiled.check(1, 32, tg.cuda.InOut(y), 5, shared=90_000, arch="sm_90").ok
    with pytest.raises(KernelLaunchError, match=r"at most 61440 bytes \(sm_75: 65536 for a block"):
        tiled.check(1, 32, tg.cuda.InOut(y), 5, shared=90_000, arch="sm_75")
    wide, x = Kernel(WIDE, "wide"), np.zeros(64 * 1024, np.float32)
    with pytest.raises(
        KernelLaunchError, match=r"block: expected at most \d+ threads of \d+ regis"
    ):
        wide.check(1, 1024, x, tg.cuda.InOut(x.copy()), 1, arch="sm_86")


def test_check_kernel_takes_an_architecture(tmp_path, capsys):
    (tmp_path / "tiled.cu").write_text(TILED)
    options = ["check-kernel", str(tmp_path / "tiled.cu"), "--grid", "1", "--block", "32"]
    options += ["--arg", "y=inout(zeros(32))", "--arg", "last=5", "--shared", "90000"]
    assert main([*options, "--arch", "sm_90"]) == 0
    assert main([*options, "--arch", "sm_75"]) == 2
    assert re.search("expected at most 61440 bytes.*got 90000", capsys.readouterr().err)
