"""Device memory: cudaMalloc, and a pool over it that splits and merges blocks as CuPy's does."""

import gc
import threading
import weakref
from contextlib import contextmanager

import numpy as np

from cupy._stream import ERROR_MEMORY_ALLOCATION, CUDARuntimeError, check, get_current_stream

DEVICE_BYTES = 1 << 32
_ROUND = 512
_given = weakref.WeakValueDictionary()  # by address, what cudaMalloc gave and nobody has freed
_taken = 0  # bytes of the device that cudaMalloc has given out


class OutOfMemoryError(MemoryError):
    """As of cupy.cuda.memory."""

    def __init__(self, size, total, limit=0):
        limited = f", limit set to: {limit:,} bytes" if limit else ""
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes{limited})."
        )


class Memory:
    """What cudaMalloc gives: aligned, as large as asked for, with contents that mean nothing.

    In CuPy's relaxed mode it may be asked while a stream is capturing.
    """

    def __init__(self, size):
        global _taken
        check()
        self.size = 0
        if _taken + size > DEVICE_BYTES:
            raise CUDARuntimeError(ERROR_MEMORY_ALLOCATION, "cudaErrorMemoryAllocation")
        room = np.full(size + 256, 0xFF, np.uint8)
        start = -room.ctypes.data % 256
        self.raw, self.size = room[start : start + size], size
        _taken += size
        _given[self.raw.ctypes.data] = self.raw

    def __del__(self):
        global _taken
        _taken -= self.size


def memory_at(address, count):
    """The bytes that cudaMalloc gave and among which these are, None if there are none."""
    for start, raw in _given.items():
        if 0 <= address - start <= raw.size - count:
            return raw
    return None


class MemoryPointer:
    """A place in some memory, which it keeps."""

    def __init__(self, mem, offset):
        self.mem, self.raw = mem, mem.raw[offset:]
        self.ptr = mem.raw.ctypes.data + offset


class _Chunk:
    """A part of what cudaMalloc gave; its neighbours are the other parts."""

    def __init__(self, mem, offset, size, arena):
        self.mem, self.offset, self.size, self.arena = mem, offset, size, arena
        self.prev = self.next = None

    def split(self, size):
        """Keep so many bytes; what is left over, if anything, becomes a chunk of its own."""
        if self.size == size:
            return
        rest = _Chunk(self.mem, self.offset + size, self.size - size, self.arena)
        rest.prev, rest.next, self.size = self, self.next, size
        if self.next is not None:
            self.next.prev = rest
        self.next = rest
        self.arena.append(rest)

    def merge_next(self):
        self.size, self.next = self.size + self.next.size, self.next.next
        if self.next is not None:
            self.next.prev = self


class _PooledMemory:
    """A chunk that is in use; it goes back when nobody refers to it any more."""

    def __init__(self, pool, chunk):
        self.pool, self.chunk = pool, chunk
        self.raw = chunk.mem.raw[chunk.offset : chunk.offset + chunk.size]

    def __del__(self):
        self.pool.take_back(self.chunk)


class MemoryPool:
    """The free chunks of each stream, of which the smallest that is large enough serves a request.

    A chunk goes back to the stream in which it was allocated, known by its handle alone.
    """

    def __init__(self, allocator=None):
        self._allocator = allocator or (lambda size: MemoryPointer(Memory(size), 0))
        self._arenas, self._total, self._used, self._limit = {}, 0, 0, 0

    def malloc(self, size):
        check()
        size = -(-size // _ROUND) * _ROUND
        if not size:
            return MemoryPointer(Memory(0), 0)
        arena = self._arenas.setdefault(get_current_stream().ptr, [])
        fitting = [chunk for chunk in arena if chunk.size >= size]
        if fitting:
            chunk = min(fitting, key=lambda chunk: chunk.size)
            arena.remove(chunk)
            chunk.split(size)
        else:
            chunk = _Chunk(self._try_malloc(size), 0, size, arena)
        self._used += size
        return MemoryPointer(_PooledMemory(self, chunk), 0)

    def _try_malloc(self, size):
        """cudaMalloc; where there is no room, what is free goes back before it is tried again."""
        tries = [lambda: None, self.free_all_blocks, lambda: (gc.collect(), self.free_all_blocks())]
        for make_room in tries:
            make_room()
            if self._limit and self._total + size > self._limit:
                continue
            self._total += size
            try:
                return self._allocator(size).mem
            except BaseException as error:
                self._total -= size
                if getattr(error, "status", None) != ERROR_MEMORY_ALLOCATION:
                    raise
        raise OutOfMemoryError(size, self._total, self._limit)

    def take_back(self, chunk):
        """What is freed keeps its bytes, as on a GPU, and joins neighbours that are free."""
        self._used -= chunk.size
        arena = chunk.arena
        while chunk.next in arena:
            arena.remove(chunk.next)
            chunk.merge_next()
        while chunk.prev in arena:
            chunk = chunk.prev
            arena.remove(chunk)
            chunk.merge_next()
        arena.append(chunk)

    def free_all_blocks(self, stream=None):
        """cudaFree of everything that is free and not split."""
        for arena in self._arenas.values():
            whole = [c for c in arena if c.prev is None and c.next is None]
            self._total -= sum(chunk.size for chunk in whole)
            arena[:] = [c for c in arena if c not in whole]

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


pageable = []  # the bytes of each copy from memory that is not pinned
_pinned_free = {}  # by size
_pinned = []  # all that was ever made: a copy may still read it after `set` returned


class _Pinned:
    """Pinned memory: blocks of powers of two, handed out again as soon as they are dropped."""

    def __init__(self, nbytes):
        self.size = max(_ROUND, 1 << max(nbytes - 1, 0).bit_length())
        found = _pinned_free.setdefault(self.size, [])
        if not found:
            found.append(np.empty(self.size, np.uint8))
            _pinned.append(found[0])
        self.raw = found.pop()
        self.__array_interface__ = self.raw.__array_interface__

    def __del__(self):
        _pinned_free[self.size].append(self.raw)


def empty_pinned(shape, dtype):
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.asarray(_Pinned(nbytes))[:nbytes].view(dtype).reshape(shape)


def is_pinned(array):
    at = array.ctypes.data
    return any(0 <= at - raw.ctypes.data < raw.size for raw in _pinned)


def as_read_later(array):
    """What a copy from host memory will read: pinned memory, whoever has it by then, or a copy."""
    at = array.ctypes.data
    for raw in _pinned:
        offset = at - raw.ctypes.data
        if 0 <= offset < raw.size:
            return np.ndarray(array.shape, array.dtype, raw, offset, array.strides)
    pageable.append(array.nbytes)
    return array.copy()
