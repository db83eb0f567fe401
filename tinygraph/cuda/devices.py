"""The devices on which kernels run: `emulator`, and `cuda` through CuPy.

This is the only file that may import cupy, and only when a cuda device is asked for.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DeviceError, install
from tinygraph.engine import Array, Device, Shape, get_device, here
from tinygraph.engine.device import COPIED, register

_NOTHING = nullcontext()


class EmulatorDevice(Device):
    """Numpy arrays, and the `.cu` kernels, which the emulator runs on the CPU."""

    name = "emulator"
    runs_kernels = True

    def empty(self, shape: Shape, dtype: Any) -> Array:
        array = np.empty(shape, dtype)
        here.top.fresh(array)
        return array

    def from_numpy(self, array: Array) -> Array:
        """The array in row-major order; the same object where it is so."""
        return self.contiguous(array)


class CudaDevice(Device):
    """The current NVIDIA GPU, through CuPy.

    Everything is queued in CuPy's current stream, and the host waits for nothing but what it reads.
    Memory comes from CuPy's pool, which keeps what is freed; `TINYGRAPH_CUDA_MEMORY_LIMIT` in the
    environment limits it to so many bytes, as `set_memory_limit` does.

    Raises
    ------
    DeviceError
        Without CuPy or a GPU; and from whatever makes an array, if memory does not suffice.
    """

    name = "cuda"
    runs_kernels = True
    on_host = False
    _CONSTANTS = 256  # tables that are kept, the least used one dropped first

    def __init__(self) -> None:
        self.cupy = cupy()
        gpu = self.cupy.cuda.Device()
        self.index, self.arch = gpu.id, f"sm_{gpu.compute_capability}"
        self._constants: OrderedDict[Any, Array] = OrderedDict()
        from tinygraph.base.variables import count_of  # here: of a GPU alone

        limit = count_of("device", "TINYGRAPH_CUDA_MEMORY_LIMIT", None, 0, 2**63 - 1)
        if limit is not None:
            self.set_memory_limit(limit)

    def set_memory_limit(self, limit: Any) -> None:
        """Let CuPy's pool take at most so many bytes of the GPU; 0 for no limit."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise ArgumentError(
                "device", "memory limit", "a number of bytes, 0 for no limit", repr(limit)
            )
        self.cupy.get_default_memory_pool().set_limit(size=limit)

    def nccl(self) -> Any:
        """CuPy's module of NCCL; DeviceError without its library."""
        from cupy.cuda import nccl

        if not nccl.available:
            way_out = "pip install nvidia-nccl-cu12 or nvidia-nccl-cu13, by the version of CUDA"
            raise DeviceError("device", "NCCL", "its library", "none that CuPy can load", way_out)
        return nccl

    def quiet(self) -> AbstractContextManager[Any]:
        return _NOTHING  # numpy computes nothing here

    def synchronize(self) -> None:
        self._wait("waited for the GPU", self.cupy.cuda.Device().synchronize)

    def empty(self, shape: Shape, dtype: Any) -> Array:
        try:
            array = self.cupy.ndarray(shape, dtype)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise self._out_of_memory(shape, dtype) from error
        here.top.fresh(array)
        return array

    def zeros(self, shape: Shape, dtype: Any) -> Array:
        return self.full(shape, dtype, 0)

    def full(self, shape: Shape, dtype: Any, value: float) -> Array:
        array = self.empty(shape, dtype)
        if array.size:
            array.fill(value)
        return array

    def copy(self, array: Array) -> Array:
        out = self.empty(array.shape, array.dtype)
        if out.size:
            out[...] = array
        return out

    def broadcast_to(self, array: Array, shape: Shape) -> Array:
        return self.cupy.broadcast_to(array, shape)

    def constant(self, array: Array) -> Array:
        """The table on the GPU: one copy for each content, so that a repeated step copies none."""
        key = array.dtype.str, array.shape, array.tobytes()
        found = self._constants.get(key)
        if found is None:
            pool = self.cupy.get_default_memory_pool()  # a captured step's own has no room for it
            with self.cupy.cuda.using_allocator(pool.malloc):
                found = self.from_numpy(array)
            # What a graph fills at each launch means nothing before the first one.
            if not self.cupy.cuda.get_current_stream().is_capturing():
                self._constants[key] = found
                if len(self._constants) > self._CONSTANTS:
                    self._constants.popitem(last=False)
        else:
            self._constants.move_to_end(key)
        here.top.hold(found)
        return found

    def owns(self, value: Any) -> bool:
        return isinstance(value, self.cupy.ndarray)

    def from_numpy(self, array: Array) -> Array:
        """A copy on the GPU.  A single number goes along with a launch, without a copy."""
        if self.owns(array):
            return self.contiguous(array)
        if array.size == 1:
            return self.full(array.shape, array.dtype, array.item())
        here.top.wait(COPIED)
        out: Any = self.empty(array.shape, array.dtype)
        if out.size:
            out.set(np.asarray(array, order="C"))
        return out

    def to_numpy(self, array: Any) -> Array:
        host: Array = self._wait("read values", array.get)
        return host

    def to_host(self, *arrays: Any) -> list[Array]:
        """In pinned memory: a copy to other memory is a wait by itself, whatever it is told."""
        from cupyx import empty_pinned  # of the CuPy that was found

        def copies() -> list[Array]:
            begun: list[Array] = []
            room = empty_pinned((sum((a.nbytes + 15) & ~15 for a in arrays) or 16,), np.uint8)
            first = 0
            for array in arrays:
                begun.append(np.ndarray(array.shape, array.dtype, room, first))
                first += (array.nbytes + 15) & ~15  # each at a place for any dtype
                if array.size:
                    array.get(out=begun[-1], blocking=False)
            self.cupy.cuda.get_current_stream().synchronize()
            return begun

        found: list[Array] = self._wait("read values", copies)
        return found

    def contiguous(self, array: Array) -> Array:
        return array if array.flags.c_contiguous else self.copy(array)

    def _wait(self, why: str, wait: Callable[[], Any]) -> Any:
        """What `wait()` gives; a launch that has failed shows there."""
        here.top.wait(why)
        try:
            return wait()
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(
                "cuda",
                "wait",
                "launches that ran to their end",
                error,
                "in a new process, under tg.detect_anomaly(), each launch is waited for, and the "
                "error names the one that fails",
            ) from error

    def _out_of_memory(self, shape: Shape, dtype: Any) -> DeviceError:
        pool = self.cupy.get_default_memory_pool()
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        asked = math.prod(sizes) * np.dtype(dtype).itemsize
        limit = pool.get_limit()
        allowed = f"a limit of {limit:,} bytes" if limit else "no limit but the GPU's memory"
        return DeviceError(
            "cuda",
            f"array {np.dtype(dtype)}{list(sizes)}",
            f"room for {asked:,} bytes",
            f"{pool.used_bytes():,} bytes in use, with {allowed}",
            "a smaller batch, tg.no_grad() where nothing is learnt, or a "
            "larger limit: tg.cuda.set_memory_limit(bytes)",
        )


EMULATOR = EmulatorDevice()
register("emulator", lambda: EMULATOR)
register("cuda", CudaDevice)


def set_memory_limit(limit: int) -> None:
    """Let tinygraph and CuPy take at most so many bytes of the GPU; 0 for no limit.

    Raises
    ------
    DeviceError
        Without CuPy or a GPU.
    ArgumentError
        Not a number of bytes.
    """
    gpu: Any = get_device("cuda")
    gpu.set_memory_limit(limit)


def is_available() -> bool:
    """Whether device "cuda" can be used: CuPy is installed, and there is a GPU.

    Examples
    --------
    >>> import tinygraph as tg
    >>> device = "cuda" if tg.cuda.is_available() else "cpu"
    """
    try:
        get_device("cuda")
    except DeviceError:
        return False
    return True


def device_count() -> int:
    """How many GPUs can be used: the current one, or none.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.cuda.device_count() == int(tg.cuda.is_available())
    True
    """
    return int(is_available())


def cupy() -> Any:
    """The module cupy, imported at the first call; nothing else in tinygraph imports it.

    Raises
    ------
    DeviceError
        If CuPy is not installed or cannot be loaded, or if it finds no GPU.
    """
    way_out = "the emulator runs the same kernels on the CPU: use device 'emulator' or numpy arrays"
    try:
        import cupy as module
    except ImportError as error:
        raise DeviceError(
            "device",
            "cuda",
            "CuPy, with the CUDA headers of its extra ctk",
            f"{type(error).__name__}: {error}",
            f"{install('cuda12')} or {install('cuda13')}, by the version of your CUDA driver; "
            f"or {way_out}",
        ) from error
    if not module.cuda.is_available():
        raise DeviceError(
            "device",
            "cuda",
            "an NVIDIA GPU and its driver",
            "none that CuPy can see",
            f"check what `nvidia-smi` says; or {way_out}",
        )
    return module
