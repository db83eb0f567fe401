"""Buffers that are laid out once: an op gets the same arrays at every run of a plan.

The first run answers each request of an op with a fresh array and notes it.  Afterwards it is known
from when to when each array is in use, and those whose times do not overlap share their place in
one arena.  That works because the sequence of requests never depends on values; see memory.py.
"""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from tinygraph.base import GraphError
from tinygraph.base.threads import workers
from tinygraph.cuda.devices import EMULATOR
from tinygraph.cuda.launch import is_cupy
from tinygraph.engine import CPU, Array, Device, Memory, Shape, here
from tinygraph.engine.random import Words, default_generator, first_word, uniform

ALIGNMENT = 64  # bytes: a cache line, and the widest vector register
PASSING_BYTES = 1 << 20  # of an array of the first run that is worth a mapping of its own
KERNEL_ALIGNMENT = 256  # as cudaMalloc's: no two arrays share what one warp reads at a time


class Streams:
    """The streams of random numbers of one pass over a batch, the same for all of its tiles.

    Ops draw in their order in every tile, so that they take the streams in that order too,
    whichever thread comes first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[Hashable, tuple[int, int]] = {}

    def forget(self) -> None:
        """The next pass takes new streams."""
        self._streams.clear()

    def stream(self, key: Hashable) -> tuple[int, int]:
        """The seed and stream of one request of one op."""
        with self._lock:
            if key not in self._streams:
                self._streams[key] = default_generator.seed, default_generator.next_stream()
            return self._streams[key]


class KeptMemory(Memory):
    """The Memory of one op in one phase: fresh arrays at first, the same ones ever after."""

    __slots__ = (
        *("arrays", "at", "draws", "draws_numbers", "carries", "kept", "op", "position"),
        *("_workers", "alone", "tile"),
    )

    def __init__(
        self, at: Hashable, op: str, needs: tuple[bool, ...], draws: Streams, device: Device = CPU
    ) -> None:
        super().__init__(device, needs)
        self.at, self.op, self.draws = at, op, draws  # `at` tells this call of an op from others
        self.arrays: list[Any] = []
        self.position = 0  # requests since the op's call began
        # Random numbers are those of the whole batch: where a tile begins, and its samples.
        self.tile: tuple[int, int] | None = None
        self.carries = True  # whether what the op takes follows from the batch
        self.kept = self.draws_numbers = False
        self.alone = True  # whether one thread runs the body: others run other tiles
        self._workers = 0  # as many at every run
        self.empty, self.zeros = self._empty, self._zeros

    @property
    def workers(self) -> int:
        if not self._workers:
            self._workers = 1 if self.alone else workers()
        return self._workers

    @property
    def shares_work(self) -> bool:
        """Whether threads were found to share the work of the body."""
        return self._workers > 1

    def _empty(self, shape: Shape, dtype: Any) -> Array:
        at = self.position
        self.position = at + 1
        if not self.kept:
            self.arrays.append(_passing(shape, dtype, self.device))
            return self.arrays[at]
        if at >= len(self.arrays) or self.arrays[at].shape != shape:
            raise GraphError(
                self.op,
                "mem.empty",
                "the requests of the first run: they may depend on specs, hyper-parameters, needs",
                f"another one, of shape {shape}",
                "let the op make that array itself, with numpy",
            )
        return self.arrays[at]

    def _zeros(self, shape: Shape, dtype: Any) -> Array:
        array = self._empty(shape, dtype)
        array.fill(0)
        return array

    def random(self, shape: Shape, dtype: Any = np.float32) -> Array:
        """Uniform numbers: those that the whole batch would have at the place of this tile."""
        seed, stream, first, _ = self.words(math.prod(shape[1:]), shape[0] if shape else 1)
        out = self._empty(shape, dtype)
        out[...] = uniform(shape, dtype, seed, stream, first=first)
        return out

    def words(self, of_row: int = 1, rows: int | None = None) -> Words:
        """Those that the whole batch would have from the first sample of this tile on."""
        self.draws_numbers = True
        seed, stream = self.draws.stream((self.at, self.position))
        return Words(seed, stream, self._first_word(of_row, rows), self._empty((0,), np.uint64))

    def _first_word(self, of_row: int, rows: int | None) -> int:
        if not self.carries:
            return 0
        first, samples = self.tile or (0, here.top.samples)
        return first_word(of_row, rows or samples or 1, here.top.first_sample + first, samples)


def _passing(shape: Shape, dtype: Any, device: Device) -> Array:
    """An array for the first run alone: freed, its memory goes back to the system at once.

    malloc would keep some tens of MB of it for later, beside the arena.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not device.on_host or size < PASSING_BYTES:
        return device.empty(shape, dtype)
    try:
        return np.ndarray(shape, dtype, mmap.mmap(-1, size))
    except OSError:  # no memory: numpy says so with the shape, as everywhere
        return device.empty(shape, dtype)


def is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) or is_cupy(thing)


def owner(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while is_array(array) and is_array(array.base):
        array = array.base
    return array


_PLAIN = (type(None), bool, int, float, str, bytes, np.generic, np.dtype, type)


def arrays_in(thing: Any) -> Iterator[Array | None]:
    """All arrays in what an op has saved; None for something that cannot be looked into."""
    if is_array(thing):
        yield thing
    elif isinstance(thing, (tuple, list, dict)):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from arrays_in(part)
    elif not isinstance(thing, (*_PLAIN, slice)):
        yield None


class Lifetimes:
    """From which event to which each array of the first run is in use.  Events are counted from 0.

    An array is known by the id of what owns its memory; the memories keep all of them alive.
    """

    def __init__(self) -> None:
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def born(self, arrays: Iterable[Array], event: int) -> None:
        for array in arrays:
            self.first[id(array)] = self.last[id(array)] = event

    def used(self, array: Any, event: int) -> None:
        """An array, or a view of one, is read or written at an event."""
        key = id(owner(array))
        if key in self.last:
            self.last[key] = max(self.last[key], event)


def lay_out(spans: list[tuple[int, int, int]], alignment: int = ALIGNMENT) -> tuple[list[int], int]:
    """Offsets in one arena for spans (first event, last event, bytes), and its size.

    Spans that overlap in time do not overlap in memory.  The largest first, each at the lowest
    place that is free for as long as it lives: "greedy by size" of Pisarchyk, Lee, "Efficient
    memory management for deep neural net inference", arXiv:2001.03288.

    >>> lay_out([(0, 1, 64), (1, 2, 128), (2, 3, 64)])
    ([128, 0, 128], 192)
    """
    spans = [(first, last, -(-size // alignment) * alignment) for first, last, size in spans]
    offsets = [0] * len(spans)
    placed: list[int] = []
    total = 0
    for at in sorted(range(len(spans)), key=lambda i: (-spans[i][2], spans[i][0])):
        first, last, size = spans[at]
        taken = sorted(
            (offsets[i], offsets[i] + spans[i][2])
            for i in placed
            if spans[i][0] <= last and first <= spans[i][1]
        )
        offset = 0
        for begin, end in taken:
            if offset + size <= begin:
                break
            offset = max(offset, end)
        offsets[at] = offset
        placed.append(at)
        total = max(total, offset + size)
    return offsets, total


class Lent:
    """Memory as somebody else's array: the base of its views is this, not what it is a part of.

    So the checker of kernels takes it for an array of its own.  When nobody holds it any more it
    goes `back` to a list, if there is one.
    """

    def __init__(self, memory: Array, back: list[Array] | None = None) -> None:
        self._memory, self._back = memory, back
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        if self._back is not None:
            self._back.append(self._memory)


class Arena:
    """Memory of which programs take their buffers that never run at the same time.

    What one of them leaves there, the next one overwrites.
    """

    def __init__(self, device: Device = CPU) -> None:
        self.device = device
        self._block: Any = None

    def block(self, size: int) -> Any:
        """At least so many bytes: the same ones as before, if they are enough."""
        if self._block is None or self._block.nbytes < size:
            self._block = self.device.empty((size,), np.uint8)
        return self._block


def into_arena(
    memories: Iterable[KeptMemory], lifetimes: Lifetimes, arena: Arena, elsewhere: set[int]
) -> int:
    """Give every memory its arrays in an arena, for all runs to come; the bytes that they take.

    Those whose ids are `elsewhere` get no place: None, until somebody puts an array there.
    """
    device = arena.device
    memories = list(memories)
    arrays = [a for memory in memories for a in memory.arrays if id(a) not in elsewhere]
    spans = [(lifetimes.first[id(a)], lifetimes.last[id(a)], a.nbytes) for a in arrays]
    alignment = KERNEL_ALIGNMENT if device.runs_kernels else ALIGNMENT
    offsets, total = lay_out(spans, alignment)
    block = arena.block(total + alignment)
    start = -(block.ctypes.data if device.on_host else block.data.ptr) % alignment
    places = iter(offsets)

    def placed(like: Array) -> Array:
        first = start + next(places)
        part: Array = block[first : first + like.nbytes].view(like.dtype).reshape(like.shape)
        return np.asarray(Lent(part)) if device is EMULATOR else part

    for memory in memories:
        memory.arrays = [None if id(a) in elsewhere else placed(a) for a in memory.arrays]
        memory.kept = True
    return total
