"""Batches on their way to a GPU: pinned memory, two buffers, a stream of their own.

    host            fill 0 | fill 1 |         fill 0 | ...        waits until buffer 0 was copied
    copy stream            | copy 0 | copy 1 |       | copy 0     waits until batch 0 was used
    compute stream                  | step 0 | step 1 | ...       waits until its batch is there

While the GPU computes on one batch, the next one is copied.  No more than two are in flight.
Beside the three waits of the picture there are two for memory, which CuPy hands out again by the
stream's handle, without a wait, and the handle of a stream that is gone may be that of the next:

    copy stream     before it writes to new memory: all that is queued, which may still read it
    host            before it drops pinned memory, and the stream: copies that read it (Pinned)
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from tinygraph.base.incoming import as_numbers, unmasked
from tinygraph.cuda.pinned import Pinned
from tinygraph.data.nested import mapped, parts
from tinygraph.engine import Tensor, leaf

IN_FLIGHT = 2


class _Buffer:
    """Room for one batch: pinned memory and its twin on the GPU."""

    def __init__(self, device: Any, stream: Any) -> None:
        self.device, self.stream = device, stream
        self.pinned = Pinned(device.cupy)
        self.used = device.cupy.cuda.Event(disable_timing=True)
        self.there: list[Any] = []
        self.batch: Any = None

    def fill(self, batch: Any) -> None:
        """Queue the copy of a batch, as soon as the buffer is free."""
        self.batch = batch
        arrays = [
            as_numbers(np.asarray(unmasked("DataLoader", "batch", part)), None, copy=None)
            for part in parts(batch)
        ]
        self.stream.wait_event(self.used)  # steps may still read the GPU's memory
        if [(a.shape, a.dtype) for a in arrays] != [(a.shape, a.dtype) for a in self.there]:
            self._make(arrays)
        with self.stream:
            self.pinned.send(arrays, self.there, self.stream)

    def _make(self, arrays: list[Any]) -> None:
        with self.stream:
            self.there = [self.device.empty(a.shape, a.dtype) for a in arrays]
        self._wait_for_readers()

    def _wait_for_readers(self) -> None:
        """Those of the arrays that lay in the same memory: they were queued before it was freed."""
        self.stream.wait_event(self._current().record())

    def take(self) -> Any:
        """The batch with leaves in it; what is queued from now on comes after its copy."""
        self.pinned.arrived(self._current())
        there = iter(self.there)
        return mapped(lambda _: leaf(next(there), self.device), self.batch)

    def release(self) -> None:
        """Everything that reads the batch is queued."""
        self.used.record(self._current())

    def _current(self) -> Any:
        return self.device.cupy.cuda.get_current_stream()


class _There:
    """A batch that has Tensors of a GPU already: as it is."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def take(self) -> Any:
        return self.batch

    def release(self) -> None:
        """Nothing will be written to it."""


def feed(batches: Iterator[Any], device: Any) -> Generator[Any, None, None]:
    """The batches, with Tensors on a GPU for their arrays, each copied while the last one is used.

    A Tensor holds its batch until the next one is asked for.
    """
    stream = device.cupy.cuda.Stream(non_blocking=True)
    buffers = [_Buffer(device, stream) for _ in range(IN_FLIGHT)]
    waiting: _Buffer | _There | None = None
    with closing(batches):  # type: ignore[type-var]  # a generator
        for number, batch in enumerate(batches):
            coming: _Buffer | _There
            if any(isinstance(part, Tensor) and not part.device.on_host for part in parts(batch)):
                coming = _There(batch)
            else:
                coming = buffers[number % IN_FLIGHT]
                coming.fill(batch)
            if waiting is not None:
                yield waiting.take()
                waiting.release()
            waiting = coming
        if waiting is not None:
            yield waiting.take()
            waiting.release()
