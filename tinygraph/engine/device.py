"""Where arrays live and where ops run: `cpu` (numpy), `emulator` and `cuda` (the .cu kernels).

The name of a device is what users write; `get_device` turns it into the one `Device` object of that
name, or says what is missing.  Those with kernels are made in cuda/devices.py, when they are first
asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DeviceError, nearest
from tinygraph.engine.spec import Array, Shape

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

    def __json__(self) -> str:
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


CPU = Device()

_DEVICES: dict[str, Device] = {CPU.name: CPU}
_MAKERS: dict[str, Callable[[], Device]] = {}  # of devices that higher floors know


def register(name: str, make: Callable[[], Device]) -> None:
    """Let `make` make the device of a name when it is first asked for."""
    _MAKERS[name] = make


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
    if place in _MAKERS and place not in _DEVICES:
        _DEVICES[place] = _MAKERS[place]()
    found = _DEVICES.get(place)
    if found is None or (index and not index.isdigit()):
        raise ArgumentError(
            "device",
            "name",
            "'cpu', 'emulator' or 'cuda'",
            repr(name),
            nearest(asked, [*{**_DEVICES, **_MAKERS}]),
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
