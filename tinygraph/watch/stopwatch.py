"""Stopwatch: what each op of a step takes on the cpu, seen from inside the engine.

    with Stopwatch() as lap:
        step()
    lap.costs["forward", "linear"].seconds

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
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tinygraph.engine import Array, Memory, Op, Runner, Shape, Spec, Words
from tinygraph.watch.costs import Cost, combined

Key = tuple[str, str]  # "forward", "backward" or "update", and whose
Mark = tuple[float, int, "Key | None"]  # when, which thread, what begins; None: the last one ends

ITSELF: Key = ("", "the stopwatch")
SUMS: Key = ("backward", "gradient sums")  # what the engine adds up and keeps
NO_REQUESTS = {"arrays": 0, "new_arrays": 0, "new_bytes": 0}  # for memory


class Call(NamedTuple):
    """One call, and of an op as much as is needed to count its operations."""

    key: Key
    cost: Cost
    op: Op | None = None
    specs: tuple[Spec, ...] = ()
    needs: tuple[bool, ...] = ()


class Stopwatch(Runner):
    """Watches one step, in this thread and in those that do a part of its work.

    Attributes
    ----------
    wall : float
        Seconds from begin to end.
    processor : float
        Seconds of all threads of the process together.
    outside : float
        Seconds of `wall` in which no thread was in any op.
    threads : int
        How many were in an op at some time.
    costs : dict of Cost by key
        Wall time as the head of this file says; bytes, and requests for memory.  Operations are
        those of optimisers and of the engine, which state them: of ops they are not counted here.
    calls : list of Call
        In their order.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x = tg.Tensor([3.0, 4.0], requires_grad=True)
    >>> with Stopwatch() as lap:
    ...     (x * x).sum().backward()
    >>> [(phase, name) for phase, name in lap.costs if name == "mul"]
    [('forward', 'mul'), ('backward', 'mul')]
    >>> mul = lap.costs["forward", "mul"]
    >>> mul.calls, mul.bytes, mul.new_bytes  # reads x once, and writes the product
    (1, 16, 8)
    """

    replays = False  # the bodies of ops are what is watched

    def __init__(self) -> None:
        self._marks: list[Mark] = []
        self.calls: list[Call] = []

    def __enter__(self) -> Stopwatch:
        super().__enter__()
        self._begin = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        wall, processor = time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
        super().__exit__(*exception)
        seconds, added, self.threads = _swept(self._marks)
        # Its own time is Python: a second of it is a second of a processor.
        self.wall = wall - seconds.pop(ITSELF, 0.0)
        self.processor = max(0.0, processor - added.get(ITSELF, 0.0))
        self.outside = max(0.0, self.wall - sum(seconds.values()))
        groups: dict[Key, list[Cost]] = defaultdict(list)
        for call in self.calls:
            groups[call.key].append(call.cost)
        self.costs = {}
        for key, group in groups.items():
            times: dict[str, Any] = {f"{key[0]}_seconds": seconds[key]}
            self.costs[key] = replace(combined(group), thread_seconds=added[key], **times)

    # ---- what is watched ----------------------------------------------------------------------

    def update(self, optimizer: Any) -> None:
        key = "update", optimizer.op
        with self._itself():
            self._run(key, self.below.update, optimizer)
            held = [
                [p.value, p.grad, optimizer.state[name]]
                for name, p in optimizer.parameters.items()
                if p.grad is not None
            ]
            self._count(key, bytes_of(held))

    def add_up(self, add: Callable[..., Any], total: Any, term: Any, *how: Any) -> Any:
        """Of a plan's sums, which lie where they stay, the time alone is known."""
        with self._itself():
            after = self._run(SUMS, self.below.add_up, add, total, term, *how)
            known = isinstance(after, np.ndarray)
            new = known and after is not total
            self._count(
                SUMS,
                bytes_of([total, term, after]) if known else 0,
                operations=term.size if isinstance(total, np.ndarray) else 0,
                arrays=int(new),
                new_arrays=int(new),
                new_bytes=after.nbytes if new else 0,
            )
        return after

    def forward(self, node: Any, mem: Memory, arrays: list[Array]) -> Any:
        if mem.device.runs_kernels:  # it is launches that count there
            return self.below.forward(node, mem, arrays)
        key = "forward", node.op.name
        with self._itself():
            counted = CountedMemory(mem)
            value, saved = self._run(key, self.below.forward, node, counted, arrays)
            is_view = any(np.may_share_memory(value, x) for x in arrays)
            moved = 0 if is_view else bytes_of([*arrays, value, saved])
            self._count(key, moved, (node.op, _specs(arrays), mem.needs), **counted.requests)
        return value, saved

    def backward(self, node: Any, mem: Memory, grad: Array, saved: Any) -> Any:
        if mem.device.runs_kernels:
            return self.below.backward(node, mem, grad, saved)
        key = "backward", node.op.name
        with self._itself():
            counted = CountedMemory(mem)
            gradients = self._run(key, self.below.backward, node, counted, grad, saved)
            made = [g for g in gradients if g is not None and not np.may_share_memory(g, grad)]
            moved = bytes_of([grad, saved, *made]) if made else 0
            self._count(key, moved, (node.op, _specs(node.inputs), node.needs), **counted.requests)
        return gradients

    @contextmanager
    def _itself(self) -> Iterator[None]:
        """Around what the stopwatch takes itself."""
        self._mark(ITSELF)
        try:
            yield
        finally:
            self._mark(None)

    def _run(self, key: Key, function: Callable[..., Any], *args: Any) -> Any:
        self._mark(key)
        try:
            return function(*args)
        finally:
            self._mark(None)

    def _mark(self, key: Key | None) -> None:
        self._marks.append((time.perf_counter(), threading.get_ident(), key))

    def _count(self, key: Key, moved: int, applied: tuple[Any, ...] = (), **numbers: Any) -> None:
        cost = Cost(op=key[1], bytes=moved, **{**NO_REQUESTS, **numbers})
        self.calls.append(Call(key, cost, *applied))


# ---- counting -----------------------------------------------------------------------------------


class CountedMemory(Memory):
    """Hands every request on to another Memory, and counts it."""

    __slots__ = ("inner", "requests")

    def __init__(self, inner: Memory) -> None:
        super().__init__(inner.device, inner.needs)
        self.inner = inner
        self.requests = {**NO_REQUESTS}
        self.broadcast_to, self.constant = inner.broadcast_to, inner.constant
        self.contiguous = inner.contiguous
        self.empty, self.zeros = self._empty, self._zeros

    @property
    def workers(self) -> int:
        return self.inner.workers

    def _empty(self, shape: Shape, dtype: Any) -> Array:
        return self._count(self.inner.empty(shape, dtype))

    def _zeros(self, shape: Shape, dtype: Any) -> Array:
        return self._count(self.inner.zeros(shape, dtype))

    def random(self, shape: Shape, dtype: Any = np.float32) -> Array:
        return self._count(self.inner.random(shape, dtype))

    def words(self, of_row: int = 1, rows: int | None = None) -> Words:
        return self.inner.words(of_row, rows)

    def _count(self, array: Array) -> Array:
        self.requests["arrays"] += 1
        if not self.inner.kept:
            self.requests["new_arrays"] += 1
            self.requests["new_bytes"] += array.nbytes
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
