"""checking(): a stretch of code in which every launch on the emulator runs under the checker."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tinygraph.device import EMULATOR
from tinygraph.shapes import Array


class FreshArrays:
    """Arrays that the emulator device gave out uninitialised and that no kernel has taken yet."""

    def __init__(self) -> None:
        self._arrays: dict[int, weakref.ref[Array]] = {}

    def add(self, array: Array) -> None:
        key = id(array)
        # Removed when the array dies, before another object can have its id.
        self._arrays[key] = weakref.ref(array, lambda _: self._arrays.pop(key, None))

    def take(self, array: Array) -> bool:
        """Whether these are all elements of a fresh array; it is no longer fresh afterwards."""
        for owner in (array, array.base):
            if owner is not None and self._arrays.pop(id(owner), None) is not None:
                return isinstance(owner, np.ndarray) and owner.size == array.size
        return False


_active: ContextVar[FreshArrays | None] = ContextVar("checked_launches", default=None)


@contextmanager
def checking() -> Iterator[None]:
    """Run every emulator launch inside the `with` under the checker; about 20 times slower.

    An array that `device.empty` of the emulator makes inside counts as an output at the first
    launch that may write it: reading it, or leaving elements out, is then found.  It holds for the
    thread that entered it.

    Raises
    ------
    KernelLaunchError
        From the launch in which the checker finds a mistake; the message holds the report.

    >>> with checking():
    ...     fresh_arrays() is not None
    True
    """
    token = _active.set(FreshArrays())
    before, EMULATOR.on_empty = EMULATOR.on_empty, track_fresh
    try:
        yield
    finally:
        EMULATOR.on_empty = before
        _active.reset(token)


def fresh_arrays() -> FreshArrays | None:
    """The fresh arrays of the innermost `checking()`; None outside."""
    return _active.get()


def track_fresh(array: Array) -> None:
    """Count an array as an output until the first launch that may write it; see `checking`."""
    fresh: Any = _active.get()
    if fresh is not None:
        fresh.add(array)
