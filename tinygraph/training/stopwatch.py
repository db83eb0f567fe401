"""Stopwatch: what each op of a step takes on the cpu, seen from inside the engine.

    watch = Stopwatch()
    with watch.lap():
        step()
    watch.laps[0].seconds["forward", "linear"]

It is a runner (running.py): every call that it is asked to make leaves two marks, when it began
and when it ended.  From the marks of all threads a lap works out its wall time:

    one thread in an op        the time is that op's
    k threads, each in one     each op gets 1 / k of the time
    no thread in any           the time is nobody's: Python between the ops

so that the parts of a lap add up to the whole.  An op inside of another one gets its own time, and
the other one what is left.  What the stopwatch itself takes is taken out.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinygraph.memory import Memory
from tinygraph.running import Runner
from tinygraph.shapes import Array, Shape, Spec

Key = tuple[str, str]  # "forward", "backward" or "update", and whose
Mark = tuple[float, int, "Key | None"]  # when, which thread, what begins; None: the last one ends

ITSELF: Key = ("", "the stopwatch")
SUMS: Key = ("backward", "gradient sums")  # what the engine adds up and keeps


@dataclass
class Counts:
    """What the calls under one key have done in a lap.

    Attributes
    ----------
    calls : int
    bytes : int
        Each array that was given, saved or returned, once; nothing where a view is returned.
    arrays : int
        Requests for memory, `mem.empty` and the like.
    new_arrays, new_bytes : int
        Those that were answered with a new array.
    """

    calls: int = 0
    bytes: int = 0
    arrays: int = 0
    new_arrays: int = 0
    new_bytes: int = 0

    def add(self, other: Counts) -> None:
        """Count other calls too."""
        self.calls += other.calls
        self.bytes += other.bytes
        self.arrays += other.arrays
        self.new_arrays += other.new_arrays
        self.new_bytes += other.new_bytes


@dataclass(frozen=True)
class Work:
    """One call of an op, as much of it as is needed to count its operations."""

    key: Key
    op: Any  # an Op: the room of ops lies above this one
    specs: tuple[Spec, ...]
    needs: tuple[bool, ...]


@dataclass
class Lap:
    """What one step took.

    Attributes
    ----------
    wall : float
        Seconds from begin to end.
    processor : float
        Seconds of all threads of the process together.
    seconds : dict of float by key
        Wall time; see the head of this file.
    thread_seconds : dict of float by key
        The same, added up over threads: more than the wall time where several compute at once.
    threads : int
        How many were in an op at some time.
    counts : dict of Counts by key
    work : list of Work
        Of all calls of ops, in their order.
    operations : dict of int or None by key
        Floating-point operations of what is no op: optimisers' and the engine's own.  None where
        one of the calls states none.
    """

    wall: float = 0.0
    processor: float = 0.0
    seconds: dict[Key, float] = field(default_factory=dict)
    thread_seconds: dict[Key, float] = field(default_factory=dict)
    threads: int = 0
    counts: dict[Key, Counts] = field(default_factory=lambda: defaultdict(Counts))
    work: list[Work] = field(default_factory=list)
    operations: dict[Key, int | None] = field(default_factory=dict)

    @property
    def outside(self) -> float:
        """Wall time in which no thread was in any op."""
        return max(0.0, self.wall - sum(self.seconds.values()))


class Stopwatch:
    """Watches the steps in its laps, in this thread and in those that do a part of its work.

    Attributes
    ----------
    laps : list of Lap

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, watch = tg.Tensor([3.0, 4.0], requires_grad=True), Stopwatch()
    >>> with watch.lap():
    ...     (x * x).sum().backward()
    >>> lap = watch.laps[0]
    >>> [(phase, name) for phase, name in lap.seconds if name == "mul"]
    [('forward', 'mul'), ('backward', 'mul')]
    >>> lap.counts["forward", "mul"]  # reads x once, and writes the product
    Counts(calls=1, bytes=16, arrays=1, new_arrays=1, new_bytes=8)
    """

    def __init__(self) -> None:
        self.laps: list[Lap] = []

    @contextmanager
    def lap(self) -> Iterator[None]:
        """Around one step."""
        watcher = _Watcher()
        with watcher:
            processor, started = time.process_time(), time.perf_counter()
            yield
            wall, processor = time.perf_counter() - started, time.process_time() - processor
        lap = watcher.lap
        lap.seconds, lap.thread_seconds, lap.threads = _swept(watcher.marks)
        # Its own time is Python: a second of it is a second of a processor.
        lap.wall = wall - lap.seconds.pop(ITSELF, 0.0)
        lap.processor = max(0.0, processor - lap.thread_seconds.pop(ITSELF, 0.0))
        self.laps.append(lap)


class _Watcher(Runner):
    """Leaves marks around every call, and counts what it did."""

    replays = False  # the bodies of ops are what is watched

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.lap = Lap()
        self._lock = threading.Lock()

    # ---- around calls -----------------------------------------------------------------------

    def update(self, optimizer: Any) -> None:
        key = "update", optimizer.op
        with self._itself():
            operations = optimizer.operations_of_step()
            self._run(key, self.below.update, optimizer)
            held = [
                [p.value, p.grad, optimizer.state[name]]
                for name, p in optimizer.parameters.items()
                if p.grad is not None
            ]
            self._note(key, Counts(1, bytes_of(held)), operations)

    def add_up(self, add: Callable[..., Any], total: Any, term: Any, *how: Any) -> Any:
        """Of a plan's sums, which lie where they stay, the time alone is known."""
        with self._itself():
            after = self._run(SUMS, self.below.add_up, add, total, term, *how)
            counts = Counts(1)
            if isinstance(after, np.ndarray):
                counts.bytes = bytes_of([total, term, after])
                if after is not total:
                    counts.arrays, counts.new_arrays, counts.new_bytes = 1, 1, after.nbytes
            self._note(SUMS, counts, 0 if not isinstance(total, np.ndarray) else term.size)
        return after

    def forward(self, node: Any, mem: Memory, arrays: list[Array]) -> Any:
        if mem.device.runs_kernels:  # it is launches that count there
            return self.below.forward(node, mem, arrays)
        key = "forward", node.op.name
        with self._itself():
            counted = CountedMemory(mem)
            returned = self._run(key, self.below.forward, node, counted, arrays)
            value, saved = returned
            is_view = any(np.may_share_memory(value, x) for x in arrays)
            moved = 0 if is_view else bytes_of([*arrays, value, saved])
            self._note_op(counted, moved, Work(key, node.op, _specs(arrays), mem.needs))
        return returned

    def backward(self, node: Any, mem: Memory, grad: Array, saved: Any) -> Any:
        if mem.device.runs_kernels:
            return self.below.backward(node, mem, grad, saved)
        key = "backward", node.op.name
        with self._itself():
            counted = CountedMemory(mem)
            gradients = self._run(key, self.below.backward, node, counted, grad, saved)
            made = [g for g in gradients if g is not None and not np.may_share_memory(g, grad)]
            moved = bytes_of([grad, saved, *made]) if made else 0
            self._note_op(counted, moved, Work(key, node.op, _specs(node.inputs), node.needs))
        return gradients

    @contextmanager
    def _itself(self) -> Iterator[None]:
        """Around what the stopwatch takes itself."""
        self._begin(ITSELF)
        try:
            yield
        finally:
            self._end()

    def _run(self, key: Key, function: Callable[..., Any], *args: Any) -> Any:
        self._begin(key)
        try:
            return function(*args)
        finally:
            self._end()

    def _begin(self, key: Key) -> None:
        self.marks.append((time.perf_counter(), threading.get_ident(), key))

    def _end(self) -> None:
        self.marks.append((time.perf_counter(), threading.get_ident(), None))

    def _note(self, key: Key, counts: Counts, operations: int | None) -> None:
        """A call of something that is no op."""
        with self._lock:
            self.lap.counts[key].add(counts)
            before = self.lap.operations.get(key, 0)
            known = before is not None and operations is not None
            self.lap.operations[key] = (before or 0) + (operations or 0) if known else None

    def _note_op(self, mem: CountedMemory, moved: int, work: Work) -> None:
        counts = Counts(1, moved, mem.arrays, mem.new_arrays, mem.new_bytes)
        with self._lock:
            self.lap.counts[work.key].add(counts)
            self.lap.work.append(work)


# ---- counting -----------------------------------------------------------------------------------


class CountedMemory(Memory):
    """Hands every request on to another Memory, and counts it."""

    __slots__ = ("arrays", "inner", "new_arrays", "new_bytes")

    def __init__(self, inner: Memory) -> None:
        super().__init__(inner.device, inner.needs)
        self.inner = inner
        self.arrays = self.new_arrays = self.new_bytes = 0
        self.broadcast_to, self.constant = inner.broadcast_to, inner.constant
        self.contiguous = inner.contiguous
        self.empty, self.zeros = self._empty, self._zeros

    def _empty(self, shape: Shape, dtype: Any) -> Array:
        return self._count(self.inner.empty(shape, dtype))

    def _zeros(self, shape: Shape, dtype: Any) -> Array:
        return self._count(self.inner.zeros(shape, dtype))

    def random(self, shape: Shape, dtype: Any = np.float32) -> Array:
        return self._count(self.inner.random(shape, dtype))

    def _count(self, array: Array) -> Array:
        self.arrays += 1
        if not self.inner.kept:
            self.new_arrays += 1
            self.new_bytes += array.nbytes
        return array


def bytes_of(things: Iterable[Any]) -> int:
    """Bytes of all arrays in some things, each stretch of memory once.

    >>> x = np.zeros((4, 2), np.float32)
    >>> bytes_of([x, (x.T, None, {"mask": np.zeros(3, bool)}), np.broadcast_to(x[:1, :1], (9, 9))])
    35
    """
    seen: list[Array] = []
    for array in _arrays_in(things):
        if not any(np.may_share_memory(array, other) for other in seen):
            seen.append(array)
    return sum([_bytes(array) for array in seen])


def _arrays_in(thing: Any) -> Iterator[Array]:
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, (tuple, list)):
        for part in thing:
            yield from _arrays_in(part)
    elif isinstance(thing, dict):
        yield from _arrays_in(list(thing.values()))


def _bytes(array: Array) -> int:
    """Of the elements that are there: a view that repeats some has them once."""
    sizes = [n for n, stride in zip(array.shape, array.strides, strict=True) if stride]
    return array.itemsize * math.prod(sizes) if array.size else 0


def _specs(arrays: Iterable[Any]) -> tuple[Spec, ...]:
    return tuple([Spec(x.shape, x.dtype) for x in arrays])


def _swept(marks: list[Mark]) -> tuple[dict[Key, float], dict[Key, float], int]:
    """Wall time and time of threads for each key, and how many threads were in an op.

    Between two marks every thread is in the call that it began last, if in any.

    >>> a, b = ("forward", "a"), ("forward", "b")
    >>> _swept([(0.0, 1, a), (1.0, 2, b), (3.0, 1, None), (4.0, 2, None)])[0]
    {('forward', 'a'): 2.0, ('forward', 'b'): 2.0}
    """
    wall: dict[Key, float] = defaultdict(float)
    added: dict[Key, float] = defaultdict(float)
    stacks: dict[int, list[Key]] = defaultdict(list)
    before = 0.0
    for now, thread, key in sorted(marks, key=lambda mark: mark[0]):
        running = [stack[-1] for stack in stacks.values() if stack]
        for each in running:
            wall[each] += (now - before) / len(running)
            added[each] += now - before
        before = now
        if key is None:
            stacks[thread].pop()
        else:
            stacks[thread].append(key)
    return dict(wall), dict(added), len(stacks)
