"""Pinned: host memory that a GPU reads by itself, for the arrays of one batch.

    host      write 0 |            | write 1 |          waits until copy 0 has been made
    stream            | copy 0 | ...         | copy 1

From other memory the driver copies twice, and may wait for all that is queued before.  CuPy hands
pinned memory out again as soon as it is dropped: so it is not dropped while a copy may read it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any


class Pinned:
    """Pinned memory that is used again for each batch of its shapes and dtypes."""

    def __init__(self, cupy: Any) -> None:
        self._copied = cupy.cuda.Event(disable_timing=True)
        self._arrays: list[Any] = []

    def send(self, arrays: Sequence[Any], there: Sequence[Any], stream: Any) -> None:
        """Queue the copy of arrays on the host to those on the GPU; they may then be changed."""
        self.wait()
        if [(a.shape, a.dtype) for a in arrays] != [(a.shape, a.dtype) for a in self._arrays]:
            from cupyx import empty_pinned  # of the CuPy that the device has found

            self._arrays = [empty_pinned(a.shape, a.dtype) for a in arrays]
        for array, pinned, place in zip(arrays, self._arrays, there, strict=True):
            pinned[...] = array
            if array.size:
                place.set(pinned, stream=stream)
        self._copied.record(stream)

    def arrived(self, stream: Any) -> None:
        """What is queued in a stream from now on comes after the copy."""
        stream.wait_event(self._copied)

    def wait(self) -> None:
        """Until the last copy has been made: it reads this memory."""
        self._copied.synchronize()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with suppress(RuntimeError):  # of a GPU that has failed: nothing will be copied
                self.wait()
