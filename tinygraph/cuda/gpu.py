"""A kernel on a GPU: our own NVRTC compiles it, CuPy loads and launches the machine code.

    source, headers, macros --> nvrtc.compile --> cubin --> cupy.cuda.Module --> function

CuPy compiles nothing of ours: its cache does not look into headers, and its options end with
`-ftz=true`, which flushes denormal numbers that the emulator keeps.  Ours is keyed by the digest of
all that a kernel depends on.

Whoever stands in for CuPy or for the driver is given bytes and a symbol.  `nvrtc.compile` is asked
for every one of them, by that name: a function around it knows which source and which kernel they
were made of (tests/cubins.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base import KernelCompileError, KernelLaunchError
from tinygraph.cuda import nvrtc
from tinygraph.cuda.nvrtc.occupancy import MAX_BLOCK

if TYPE_CHECKING:
    from tinygraph.cuda.launch import BoundLaunch, Launch

# Above this a GPU gives dynamic shared memory only to kernels that ask for it.
SHARED_WITHOUT_ASKING = 48 * 1024

NULL = np.uint64(0)  # a null pointer, as CuPy passes it


class GpuKernel:
    """A kernel, compiled for one GPU and loaded there.

    Parameters
    ----------
    kernel : tinygraph.cuda.Kernel
    cupy : the module
    gpu : int
        Its number.

    Raises
    ------
    KernelCompileError
        Without NVRTC; or if the kernel does not compile, or the driver refuses the machine code.
    """

    def __init__(self, kernel: Any, cupy: Any, gpu: int) -> None:
        self._cuda = cuda = cupy.cuda
        self._device = cuda.Device(gpu)
        self._errors = cuda.driver.CUDADriverError, cuda.runtime.CUDARuntimeError
        source, name, arch = kernel.source, kernel.name, f"sm_{self._device.compute_capability}"
        (compiled,) = nvrtc.compile(source, [name], nvrtc.architecture_for(source, name, arch))
        self.limits = nvrtc.limits(compiled, arch)
        # Blocks that do not fit, and that no __launch_bounds__ forbids, are possible.
        self._large = self.limits.threads < (kernel.signature.launch_bounds or MAX_BLOCK)
        # bytes that a launch may ask for so far
        self._shared = SHARED_WITHOUT_ASKING - self.limits.static
        module = cuda.Module()
        try:
            with self._device:
                module.load(compiled.cubin)
        except cuda.driver.CUDADriverError as error:
            version = cuda.runtime.driverGetVersion() // 10  # 1304 for 13.4
            raise KernelCompileError(
                kernel.name,
                "machine code",
                f"what the driver of CUDA {version // 100}.{version % 100} loads",
                f"{compiled.arch} from NVRTC {compiled.nvrtc}: {error}",
                "a newer driver, or NVRTC of the driver's version: for CUDA 12 "
                "pip install nvidia-cuda-nvrtc-cu12, and no newer one beside it",
            ) from error
        self.function = module.get_function(compiled.symbol)
        self._pointers = [at for at, p in enumerate(kernel.signature.parameters) if p.pointer]

    def launch_there(self, launch: Launch) -> None:
        """`launch` on a machine of several GPUs, of which another may be the current one."""
        with self._device:
            self.launch(launch)

    def launch(self, launch: Launch) -> None:
        """Queue a launch in the current stream.

        Raises
        ------
        KernelLaunchError
            For a block that does not fit the GPU, and where the driver refuses.
        """
        bound, arguments = launch.bound, launch.open.copy()
        for at in self._pointers:
            if not arguments[at].size:  # a view of no elements has an address all the same
                arguments[at] = NULL
        for at, parameter, *_ in bound.scalars:
            arguments[at] = parameter.dtype.type(arguments[at])
        last = bound.by_value
        if last is None:
            last = bound.by_value = self._by_value(bound)
        if bound.shared or self._large:
            self._check(launch)
        events = launch.events
        if events:
            events[0].record()
        try:
            self.function(bound.grid, bound.block, (*arguments, *last), bound.shared)
            if launch.waits:
                self._cuda.get_current_stream().synchronize()
        except self._errors as error:
            raise _failed(launch, error) from error
        if events:
            events[1].record()

    def _by_value(self, bound: BoundLaunch) -> list[Any]:
        """The bound numbers in memory of their own, from where the driver reads them.

        CuPy would make such a thing of every number in every launch.
        """
        if not bound.numbers:
            return []
        parameters = bound.kernel.signature.parameters[-len(bound.numbers) :]
        return [
            self._cuda.function.CNumpyArray(np.array(number, parameter.dtype))
            for parameter, number in zip(parameters, bound.numbers, strict=True)
        ]

    def _check(self, launch: Launch) -> None:
        """Hold a launch to the GPU, and let it have its dynamic shared memory."""
        self.limits.check(launch.kernel.name, launch.block, launch.shared)
        if launch.shared > self._shared:
            driver = self._cuda.driver
            most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(self.function.ptr, most, launch.shared)
            self._shared = launch.shared


def _failed(launch: Launch, error: Exception) -> KernelLaunchError:
    """The driver's words, with the launch at which they came."""
    grid, block = (" x ".join(map(str, extent)) for extent in (launch.grid, launch.block))
    expected = "one that the GPU runs" if launch.waits else "one that the driver takes"
    way_out = (
        "the checker finds the line: kernel.check(...) with numpy arrays; the GPU is lost to this "
        "process, so start it anew"
        if launch.waits
        else "an earlier launch may have failed, which shows late: under tg.detect_anomaly() each "
        "launch is waited for, and the error names it"
    )
    got = f"grid {grid}, block {block}, {launch.shared} bytes of shared memory: {error}"
    return KernelLaunchError(launch.kernel.name, "launch", expected, got, way_out)
