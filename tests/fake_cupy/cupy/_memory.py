"""Device memory: a pool with a limit that reuses freed blocks, as CuPy's does."""

import threading
from contextlib import contextmanager

import numpy as np

from cupy._stream import refuse_while_capturing

DEVICE_BYTES = 1 << 32
_ROUND = 512


class OutOfMemoryError(MemoryError):
    """As of cupy.cuda.memory."""


class _Block:
    """Some bytes, which go back to their pool when nobody refers to them any more."""

    def __init__(self, pool, raw):
        self.pool, self.raw = pool, raw

    def __del__(self):
        if self.pool is not None:
            self.pool.take_back(self.raw)


class MemoryPool:
    """Blocks by size; one that is freed serves the next request of that size."""

    def __init__(self, allocator=None):
        self._free, self._total, self._used, self._limit = {}, 0, 0, 0

    def malloc(self, size):
        size = -(-size // _ROUND) * _ROUND
        if not size:
            return _Block(None, np.empty(0, np.uint8))
        free = self._free.setdefault(size, [])
        if not free:
            refuse_while_capturing("cudaMalloc: the pool had no free block of that size")
            if self._total + size > (self._limit or DEVICE_BYTES):
                self.free_all_blocks()
            if self._total + size > (self._limit or DEVICE_BYTES):
                raise OutOfMemoryError(
                    f"Out of memory allocating {size:,} bytes (allocated so far: {self._total:,} "
                    f"bytes, limit set to: {self._limit:,} bytes)."
                )
            self._total += size
            # As large as asked for and aligned as cudaMalloc's; contents that mean nothing.
            room = np.full(size + 256, 0xFF, np.uint8)
            start = -room.ctypes.data % 256
            free.append(room[start : start + size])
        self._used += size
        return _Block(self, free.pop())

    def take_back(self, raw):
        self._used -= raw.size
        raw[:] = raw  # what is freed keeps its bytes, as on a GPU
        self._free[raw.size].append(raw)

    def free_all_blocks(self, stream=None):
        self._total -= sum(size * len(free) for size, free in self._free.items())
        self._free = {size: [] for size in self._free}

    def set_limit(self, size=None, fraction=None):
        self._limit = size if size is not None else int(DEVICE_BYTES * (fraction or 0))

    def get_limit(self):
        return self._limit

    def used_bytes(self):
        return self._used

    def total_bytes(self):
        return self._total


class _Allocator(threading.local):
    malloc = None


_default, _allocator = MemoryPool(), _Allocator()


def get_default_memory_pool():
    return _default


def allocate(size):
    return (_allocator.malloc or _default.malloc)(size)


@contextmanager
def using_allocator(allocator=None):
    before, _allocator.malloc = _allocator.malloc, allocator
    try:
        yield
    finally:
        _allocator.malloc = before


_pinned = []  # address ranges of the host memory that a copy may still read after `set` returned


def pin(array):
    _pinned.append((array.ctypes.data, array.nbytes, array))
    return array


def is_pinned(array):
    at = array.ctypes.data
    return any(first <= at < first + size for first, size, _ in _pinned)
