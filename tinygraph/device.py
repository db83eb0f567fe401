"""Where arrays live and where ops run: `cpu` (numpy), `emulator` and `cuda` (the .cu kernels).

The name of a device is what users write; `get_device` turns it into the one `Device` object of that
name, or says what is missing.  This is the only file that may import cupy, and only when a cuda
device is asked for.
"""

from __future__ import annotations

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


CPU = Device()

_MISSING = {
    "emulator": "the kernel emulator is not part of this version",
    "cuda": "the CUDA backend is not part of this version",
}


def get_device(name: str | Device | None) -> Device:
    """The device of that name; None stands for the cpu.

    >>> get_device("cpu")
    device('cpu')
    """
    if name is None or name == "cpu":
        return CPU
    if isinstance(name, Device):
        return name
    if name in _MISSING:
        raise DeviceError(f"device: {name!r} cannot be used: {_MISSING[name]}. Way out: 'cpu'")
    raise ArgumentError(
        explain("device", "name", "'cpu', 'emulator' or 'cuda'", repr(name),
                nearest(str(name), ["cpu", *_MISSING]))
    )  # fmt: skip
