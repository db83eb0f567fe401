"""Scratch: the arrays that updates on the host write on the way to a new value."""

from __future__ import annotations

from typing import Any

from tinygraph.engine import Array, Parameter


class Scratch:
    """Scratch arrays for all parameters: views of one buffer for each dtype, device and number.

    Parameters are updated one after the other, so that the largest one sets the size.
    """

    def __init__(self, parameters: list[Parameter], count: int) -> None:
        self.flat: dict[Any, list[Array]] = {}
        sizes: dict[Any, int] = {}
        for p in parameters:
            if p.device.runs_kernels:  # they keep what they need in registers
                continue
            key = (p.device, p.dtype)
            sizes[key] = max(sizes.get(key, 0), p.size)
        for (device, dtype), size in sizes.items():
            self.flat[device, dtype] = [device.empty((size,), dtype) for _ in range(count)]

    def like(self, p: Parameter) -> list[Array]:
        """The arrays, in the shape of a parameter."""
        flats = self.flat.get((p.device, p.dtype), [])
        return [flat[: p.size].reshape(p.shape) for flat in flats]
