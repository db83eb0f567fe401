"""Copies of the arrays of a launch, far from each other, as the checker needs them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinygraph.cuda.launch import Argument

_ALIGNED = 256  # bytes: how an array lies in the memory of a GPU


@dataclass
class Copy:
    """The bytes of one or several overlapping arrays, at a place of their own."""

    low: int  # where they come from
    high: int
    memory: int
    size: int
    address: int

    def at(self, array: np.ndarray) -> int:
        return self.address + array.ctypes.data - self.low


def copy_apart(arguments: Sequence[Argument], library: Any) -> list[Copy]:
    """Copies of all arrays, a terabyte from each other; overlapping ones stay together."""
    spans: list[tuple[int, int, int]] = []
    arrays = [a.value for a in arguments if isinstance(a.value, np.ndarray) and a.value.size]
    for low, high, offset in sorted(map(_span, arrays)):
        if spans and low < spans[-1][1]:
            first, last, offset = spans.pop()
            low, high = first, max(last, high)
        spans.append((low, high, offset))
    copies = []
    for number, (low, high, offset) in enumerate(spans):
        size = offset + high - low
        memory = library.tg_far_memory(number, size)
        if not memory:
            raise MemoryError(f"the checker needs {size} bytes for the copy of an array")
        ctypes.memmove(memory + offset, low, high - low)
        copies.append(Copy(low, high, memory, size, memory + offset))
    return copies


def _span(array: np.ndarray) -> tuple[int, int, int]:
    """First byte, last byte, and how far the first is from an aligned place in its allocation."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low = array.ctypes.data
    return low, low + array.nbytes, (low - owner.ctypes.data) % _ALIGNED


def copy_of(array: np.ndarray, copies: list[Copy]) -> Copy:
    return next(c for c in copies if c.low <= array.ctypes.data < c.high)


def shares(argument: Argument, copy: Copy) -> bool:
    array = argument.value
    return (
        isinstance(array, np.ndarray)
        and array.size > 0
        and copy.low <= array.ctypes.data < copy.high
    )


def value_of(argument: Argument, copies: list[Copy]) -> Any:
    """What to pass for an argument: the address of its copy for an array."""
    value = argument.value
    if not isinstance(value, np.ndarray):
        return value
    return copy_of(value, copies).at(value) if value.size else 0


def copy_back(arguments: Sequence[Argument], copies: list[Copy], library: Any) -> None:
    """Bring back what may have been written, and give the memory back."""
    for argument in arguments:
        array = argument.value
        if isinstance(array, np.ndarray) and array.size and argument.role != "in":
            ctypes.memmove(array.ctypes.data, copy_of(array, copies).at(array), array.nbytes)
    for copy in copies:
        library.tg_far_free(copy.memory, copy.size)
