"""Where arrays live and where ops run: `cpu` (numpy), `emulator` and `cuda` (the .cu kernels).

The name of a device is what users write; `get_device` turns it into the one `Device` object of that
name, or says what is missing.  This is the only file that may import cupy, and only when a cuda
device is asked for.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tinygraph.errors import ArgumentError, DeviceError, install, nearest
from tinygraph.running import here
from tinygraph.shapes import Array, Shape

_NOTHING = nullcontext()
COPIED = "copied an array from the host"  # why the host has waited


class Device:
    """A place for arrays; equal to its own name, so that `t.device == "cpu"` reads well.

    `type` and `index` are what PyTorch calls the name and the number of a GPU.

    `runs_kernels` tells the engine which body of an op to call: numpy's, or the CUDA kernel's.
    `on_host` tells whether the host can look at values without waiting for a copy.
    """

    name = "cpu"
    runs_kernels = False
    on_host = True
    index: int | None = None
    arch: str | None = None  # the architecture of a GPU, as in "sm_90"

    @property
    def type(self) -> str:
        return self.name

    def synchronize(self) -> None:
        """Wait until everything that was launched is done; at once where nothing runs behind."""

    def quiet(self) -> AbstractContextManager[Any]:
        """Around the body of an op: inf and nan are results, of which numpy shall not warn."""
        return np.errstate(all="ignore")

    def empty(self, shape: Shape, dtype: Any) -> Array:
        """An uninitialised array."""
        return np.empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: Any) -> Array:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def full(self, shape: Shape, dtype: Any, value: float) -> Array:
        """An array filled with one number."""
        return np.full(shape, value, dtype)

    def copy(self, array: Array) -> Array:
        """A copy in row-major order, which shares its memory with nothing."""
        return np.array(array, order="C")

    def broadcast_to(self, array: Array, shape: Shape) -> Array:
        """A view of that shape, whose repeated elements are one in memory."""
        return np.broadcast_to(array, shape)

    def constant(self, array: Array) -> Array:
        """A small table from the host that an op's kernels read, and nobody changes."""
        return array

    def owns(self, value: Any) -> bool:
        """Whether this is an array as nodes of this device hold them."""
        return isinstance(value, np.ndarray)

    def from_numpy(self, array: Array) -> Array:
        """The array on this device; the same object where it is there already."""
        return array

    def to_numpy(self, array: Array) -> Array:
        """The array on the host; the same object where it is there already."""
        return array

    def to_host(self, *arrays: Array) -> list[Array]:
        """Several arrays on the host, for a single wait."""
        return [self.to_numpy(array) for array in arrays]

    def contiguous(self, array: Array) -> Array:
        """The array in row-major order, as kernels read it; the same object where it is so."""
        return np.asarray(array, order="C")

    def __repr__(self) -> str:
        return f"device({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return str(other) == self.name if isinstance(other, (str, Device)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __deepcopy__(self, memo: object) -> Device:
        return self  # the engine compares devices by identity: a copied model stays where it is

    def __reduce__(self) -> Any:
        return get_device, (self.name,)  # so does one that went to another process


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
        from tinygraph.variables import count_of  # here: of a GPU alone

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


CPU = Device()
EMULATOR = EmulatorDevice()

_DEVICES: dict[str, Device] = {device.name: device for device in (CPU, EMULATOR)}
_NAMES = (*_DEVICES, "cuda")


def get_device(name: str | int | Device | None) -> Device:
    """The device of that name; None stands for the cpu, an int for a GPU.

    Raises
    ------
    DeviceError
        "cuda" without CuPy or without a GPU, or "cuda:1" where it is not CuPy's current one.
    ArgumentError
        There is no such device.

    >>> get_device("cpu"), get_device("emulator")
    (device('cpu'), device('emulator'))
    """
    if name is None:
        return CPU
    if isinstance(name, Device):
        return name
    asked = f"cuda:{name}" if isinstance(name, int) else str(name)
    place, _, index = asked.partition(":")
    if place == "cuda" and place not in _DEVICES:
        _DEVICES[place] = CudaDevice()
    found = _DEVICES.get(place)
    if found is None or (index and not index.isdigit()):
        raise ArgumentError(
            "device", "name", "'cpu', 'emulator' or 'cuda'", repr(name), nearest(asked, _NAMES)
        )
    if index and int(index) != (found.index or 0):
        raise DeviceError(
            "device",
            "index",
            f"{found.index or 0}, the only {place} device in use",
            index,
            f"CUDA_VISIBLE_DEVICES={index} in the environment, and device 'cuda'",
        )
    return found


def device(type: str | int | Device, index: int | None = None) -> Device:
    """The device of that name, as tensors and modules are told one.

    Parameters
    ----------
    type : str, int or Device
        "cpu" (numpy), "emulator" (the CUDA kernels, on the CPU) or "cuda" (the current GPU, through
        CuPy), also with a number as in "cuda:0".  A number alone means a GPU.
    index : int, optional
        The number of the GPU.

    Returns
    -------
    Device
        Always the same object, with `.type` and `.index`; equal to its name.

    Raises
    ------
    DeviceError
        There is no CuPy, no GPU, or the GPU of that number is not the current one.
    ArgumentError
        There is no device of that name.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.device("cpu"), tg.zeros(2).device == tg.device("cpu")
    (device('cpu'), True)
    """
    return get_device(type if index is None else f"{type}:{index}")


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
