"""Where arrays live and where ops run: `cpu` (numpy), `emulator` and `cuda` (the .cu kernels).

The name of a device is what users write; `get_device` turns it into the one `Device` object of that
name, or says what is missing.  This is the only file that may import cupy, and only when a cuda
device is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygraph.errors import ArgumentError, DeviceError, explain, nearest
from tinygraph.shapes import Array, Shape


class Device:
    """A place for arrays; equal to its own name, so that `t.device == "cpu"` reads well.

    `runs_kernels` tells the engine which body of an op to call: numpy's, or the CUDA kernel's.
    """

    name = "cpu"
    runs_kernels = False
    arch: str | None = None  # the architecture of a GPU, as in "sm_90"

    def synchronize(self) -> None:
        """Wait until everything that was launched is done; at once where nothing runs behind."""

    def empty(self, shape: Shape, dtype: Any) -> Array:
        """An uninitialised array."""
        return np.empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: Any) -> Array:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def from_numpy(self, array: Array) -> Array:
        """The array on this device; the same object where it is there already."""
        return array

    def to_numpy(self, array: Array) -> Array:
        """The array on the host; the same object where it is there already."""
        return array

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


class EmulatorDevice(Device):
    """Numpy arrays, and the `.cu` kernels, which the emulator runs on the CPU.

    `on_empty` is called with every uninitialised array.  `tg.cuda.checking()` sets it for a while:
    what no kernel has written yet is then known, and reading it is found.
    """

    name = "emulator"
    runs_kernels = True
    on_empty: Callable[[Array], None] | None = None

    def empty(self, shape: Shape, dtype: Any) -> Array:
        array = np.empty(shape, dtype)
        if self.on_empty is not None:
            self.on_empty(array)
        return array

    def from_numpy(self, array: Array) -> Array:
        """The array in row-major order; the same object where it is so."""
        return self.contiguous(array)


CPU = Device()
EMULATOR = EmulatorDevice()

_DEVICES = {device.name: device for device in (CPU, EMULATOR)}
_MISSING = {"cuda": "the CUDA backend is not part of this version"}


def get_device(name: str | Device | None) -> Device:
    """The device of that name; None stands for the cpu.

    >>> get_device("cpu"), get_device("emulator")
    (device('cpu'), device('emulator'))
    """
    if name is None:
        return CPU
    if isinstance(name, Device):
        return name
    asked = str(name)
    if asked in _DEVICES:
        return _DEVICES[asked]
    if asked in _MISSING:
        raise DeviceError(
            f"device: {asked!r} cannot be used: {_MISSING[asked]}. Way out: 'emulator', which runs "
            "the same kernels on the CPU, or 'cpu'"
        )
    raise ArgumentError(
        explain("device", "name", "'cpu', 'emulator' or 'cuda'", repr(name),
                nearest(asked, [*_DEVICES, *_MISSING]))
    )  # fmt: skip


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
            explain("device", "cuda", "CuPy", f"{type(error).__name__}: {error}",
                    "pip install 'tinygraph-nn[cuda12]' or 'tinygraph-nn[cuda13]', by the version "
                    f"of your CUDA driver; or {way_out}")
        ) from error  # fmt: skip
    if not module.cuda.is_available():
        raise DeviceError(
            explain("device", "cuda", "an NVIDIA GPU and its driver", "none that CuPy can see",
                    f"check what `nvidia-smi` says; or {way_out}")
        )  # fmt: skip
    return module
