"""GraphMemory: the pool of a step that is recorded as a CUDA graph.

A graph writes to the same blocks at each launch, also to those that nobody refers to any more:

    recorded      blocks are split, merged and given out again, in the order of the step
    afterwards    nothing is given out, for it would be overwritten by the next launch
    always        no block that the graph writes goes back to the driver

CuPy's pools make room by cudaFree of what is cached, so that this one asks for memory itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class GraphMemory:
    """A pool of CuPy's, within the limit that it shares with the default pool."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.recorded = False  # whether a graph writes to these blocks, or is about to
        ask = weakref.WeakMethod(self._ask_the_driver)  # the pool shall not keep itself alive
        self.pool = cupy.cuda.MemoryPool(lambda size: ask()(size))  # type: ignore[misc]
        self.pool.set_limit(size=0)

    @contextmanager
    def used(self) -> Iterator[None]:
        """New arrays of this thread lie here."""
        with self.cupy.cuda.using_allocator(self.pool.malloc):
            yield

    def _ask_the_driver(self, size: int) -> Any:
        """One more block from cudaMalloc.  The pool counts it before it asks."""
        cuda, shared = self.cupy.cuda, self.cupy.get_default_memory_pool()
        limit = shared.get_limit()
        for first in (True, False):
            total = shared.total_bytes() + self.pool.total_bytes()
            if not limit or total <= limit:
                try:
                    return cuda.MemoryPointer(cuda.Memory(size), 0)
                except cuda.runtime.CUDARuntimeError as error:
                    if error.status != cuda.runtime.errorMemoryAllocation:
                        raise
            if first:
                shared.free_all_blocks()
                if not self.recorded:
                    self.pool.free_all_blocks()
        raise cuda.memory.OutOfMemoryError(size, total - size, limit)
