"""Copies of the arrays of a launch, far from each other, as the checker needs them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinygraph.cuda.arguments import Argument

_ALIGNED = 256  # bytes: how an array lies in the memory of a GPU


@dataclass
class Copy:
    """The bytes of one or several overlapping arrays, at a place of their own."""

    low: int  # where they come from
    high: int
    offset: int  # of `low` from an aligned place in its allocation
    arguments: list[Argument] = field(default_factory=list)
    memory: int = 0

    @property
    def size(self) -> int:
        return self.offset + self.high - self.low

    @property
    def address(self) -> int:
        return self.memory + self.offset

    def at(self, array: np.ndarray) -> int:
        return self.address + array.ctypes.data - self.low


def copy_apart(arguments: Sequence[Argument], library: Any) -> list[Copy]:
    """Copies of all arrays, a terabyte from each other; overlapping ones stay together."""
    copies: list[Copy] = []
    arrays = [a.value for a in arguments if isinstance(a.value, np.ndarray) and a.value.size]
    for low, high, offset in sorted(map(_span, arrays)):
        if copies and low < copies[-1].high:
            copies[-1].high = max(copies[-1].high, high)
        else:
            copies.append(Copy(low, high, offset))
    for copy in copies:
        copy.memory = library.tg_far_memory(copy.size)
        if not copy.memory:
            raise MemoryError(f"the checker needs {copy.size} bytes for the copy of an array")
        ctypes.memmove(copy.address, copy.low, copy.high - copy.low)
    for argument in arguments:
        found = copy_of(argument, copies)
        if found:
            found.arguments.append(argument)
    return copies


def _span(array: np.ndarray) -> tuple[int, int, int]:
    """First byte, last byte, and how far the first is from an aligned place in its allocation."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low = array.ctypes.data
    return low, low + array.nbytes, (low - owner.ctypes.data) % _ALIGNED


def copy_of(argument: Argument, copies: list[Copy]) -> Copy | None:
    """Where the array of an argument lies; None for a number and for an empty array."""
    array = argument.value
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    return next(c for c in copies if c.low <= array.ctypes.data < c.high)


def value_of(argument: Argument, copies: list[Copy]) -> Any:
    """What to pass for an argument: the address of its copy for an array, 0 for an empty one."""
    copy = copy_of(argument, copies)
    if copy:
        return copy.at(argument.value)
    return 0 if isinstance(argument.value, np.ndarray) else argument.value


def copy_back(copies: list[Copy], library: Any) -> None:
    """Bring back what may have been written, and give the memory back."""
    for copy in copies:
        for argument in copy.arguments:
            if argument.role != "in":
                array = argument.value
                ctypes.memmove(array.ctypes.data, copy.at(array), array.nbytes)
        library.tg_far_free(copy.memory, copy.size)
