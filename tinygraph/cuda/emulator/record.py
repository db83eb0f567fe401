"""From the run time's record of a launch to a Trace."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tinygraph.cuda.arguments import Argument
from tinygraph.cuda.emulator.branches import branches, taken
from tinygraph.cuda.emulator.findings import Finding
from tinygraph.cuda.emulator.trace import (
    BRANCH,
    CHANGE,
    CODE,
    EVENT,
    Place,
    Trace,
    TracedArray,
    TracedVariable,
)
from tinygraph.cuda.emulator.variables import Variables

Kernel: TypeAlias = Any  # of checker.py, which stands above this file and has launches recorded

_SHARED, _READ_ONLY, _OF_THE_MODULE = 1, 2, 16  # flags of a region, as in runtime/check.h
_ALIGNED = 256


class Wish(NamedTuple):
    """What to record: blocks by their numbers, at most so many events; lanes from the last on."""

    blocks: tuple[int, ...] = (0,)
    limit: int = 100_000
    reverse: bool = False


class _Event(ctypes.Structure):
    """`Event` in runtime/check.h."""

    _fields_ = [
        *[("kind", ctypes.c_uint8), ("refused", ctypes.c_uint8), ("size", ctypes.c_uint16)],
        *[(name, ctypes.c_uint32) for name in ("thread", "epoch", "mask")],
        ("block", ctypes.c_uint64),
        *[("array", ctypes.c_int32), ("source", ctypes.c_int32), ("offset", ctypes.c_int64)],
        ("value", ctypes.c_uint64 * 2),
        ("before", ctypes.c_uint64),
        *[("file", ctypes.c_size_t), ("line", ctypes.c_int32), ("pc", ctypes.c_size_t)],
        ("callers", ctypes.c_size_t * 3),
    ]


_RAW = np.dtype(_Event)
# `Variable` and `Change` in runtime/record.c.
_VARIABLE = np.dtype(
    [(name, np.uint64) for name in ("begin", "end", "low")]
    + [(name, np.int32) for name in ("function", "offset", "size", "unused")]
)
_CHANGE = np.dtype(
    [
        ("event", np.uint32),
        ("variable", np.uint32),
        ("first", np.uint64),
        ("value", np.uint64),
    ]
)


class Recorder:
    """The record of one launch under the checker: `begin` before it, `end` after it."""

    def __init__(self, library: Any, wish: Wish, kernel: Kernel) -> None:
        if library.tg_event_size() != ctypes.sizeof(_Event):
            raise RuntimeError("emulator: run time and record.py disagree on struct Event")
        self.library, self.wish, self.kernel = library, wish, kernel
        self.variables: Variables = kernel.in_frames
        self.initial: dict[str, np.ndarray] = {}

    def begin(self, arguments: Sequence[Argument]) -> None:
        """The launch comes next."""
        for argument in arguments:
            if isinstance(argument.value, np.ndarray):
                self.initial[argument.parameter.name] = argument.value.copy()
        for name, address, size in self.kernel.variables:
            self.initial[name] = np.frombuffer(ctypes.string_at(address, size), np.uint8)
        blocks = (ctypes.c_uint64 * len(self.wish.blocks))(*self.wish.blocks)
        self.library.tg_trace_begin(blocks, len(blocks), self.wish.limit, int(self.wish.reverse))
        functions = sorted({local.begin for local in self.variables.locals})
        rows = [
            (
                *(self.kernel.base + at for at in (v.begin, v.end, v.low)),
                *(functions.index(v.begin), v.offset, v.dtype.itemsize, 0),
            )
            for v in self.variables.locals
        ]
        table = np.array(rows, _VARIABLE)
        self.library.tg_trace_variables(table.ctypes.data, len(rows), len(functions))

    def end(self, grid: Any, block: Any, findings: Sequence[Finding]) -> Trace:
        """What happened."""
        table, cut = ctypes.c_void_p(), ctypes.c_uint64()
        count = self.library.tg_trace_end(ctypes.byref(table), ctypes.byref(cut))
        size = count * ctypes.sizeof(_Event)
        recorded = np.frombuffer(ctypes.string_at(table, size) if size else b"", _RAW)
        raw, moved, ways = self._with_branches(recorded)
        events, places, kept = self._placed(raw)
        numbers = np.concatenate([np.cumsum(kept) - kept, [len(events)]])
        changes = self._changes(recorded, numbers[moved], numbers[ways], events, places)
        numbers = numbers[moved]  # of what was recorded, among the events
        found = tuple(replace(f, event=int(numbers[min(f.event or 0, count)])) for f in findings)
        source = self.kernel.source
        files = {p.file: tuple(source.lines_of(p.file)) for p in places}
        return Trace(
            self.kernel.signature.name,
            grid,
            block,
            self.wish.blocks,
            events,
            tuple(places),
            tuple(self._arrays()),
            found,
            files,
            cut.value,
            self.wish.reverse,
            tuple(
                TracedVariable(v.name, v.function, v.dtype, v.line) for v in self.variables.locals
            ),
            changes,
        )

    def _with_branches(self, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What was recorded with an event for each choice; where the others are now, and where
        the choice is that led to each of them, if one did."""
        code = np.flatnonzero(raw["kind"] == CODE)
        keys = raw["block"][code] * np.uint64(1024) + raw["thread"][code]
        jumps = taken(branches(self.kernel.library), keys, raw["pc"][code])
        at = code[jumps != 0]
        rows = raw[at].copy()
        rows["kind"] = BRANCH
        rows["pc"] = jumps[jumps != 0] + np.uint64(1)  # as if it were a return address
        numbers = np.arange(len(raw) + 1)
        moved, ways = (numbers + np.searchsorted(at, numbers, side) for side in ("right", "left"))
        return np.insert(raw, at, rows), moved, ways

    def _changes(
        self,
        raw: np.ndarray,
        numbers: np.ndarray,
        ways: np.ndarray,
        events: np.ndarray,
        places: list[Place],
    ) -> np.ndarray:
        """Which variables had a new value at which event.

        What a thread finds in a variable when it enters the function is what the frame held before;
        it counts from the first event behind the line of the declaration.  What is seen behind a
        choice was so when it was made.
        """
        table = ctypes.c_void_p()
        count = self.library.tg_trace_changes(ctypes.byref(table))
        size = count * _CHANGE.itemsize
        noted = np.frombuffer(ctypes.string_at(table, size) if size else b"", _CHANGE)
        changes = np.zeros(count, CHANGE)
        for name in ("variable", "value"):
            changes[name] = noted[name]
        changes["thread"], changes["block"] = (
            raw["thread"][noted["event"]],
            raw["block"][noted["event"]],
        )
        changes["event"] = np.where(noted["first"], numbers[noted["event"]], ways[noted["event"]])
        lines = np.array([p.line for p in places] + [0])[events["place"]]
        dropped = np.zeros(count, bool)
        later: dict[tuple[int, int, int], int] = {}  # the next change of a variable of a thread
        events_of = _by_thread(events)
        declared = [v.line for v in self.variables.locals]
        for k in range(count - 1, -1, -1):
            change = changes[k]
            key = int(change["block"]), int(change["thread"]), int(change["variable"])
            if noted["first"][k]:
                mine = events_of.get(key[:2], np.array([], int))
                behind = mine[np.searchsorted(mine, change["event"]) :]
                behind = behind[lines[behind] > declared[key[2]]]
                if not len(behind) or behind[0] >= later.get(key, len(events)):
                    dropped[k] = True
                else:
                    changes["event"][k] = behind[0]
            later[key] = int(change["event"])
        changes = changes[~dropped & (changes["event"] < len(events))]
        return changes[np.argsort(changes["event"], kind="stable")]

    # ---- places -----------------------------------------------------------------------------

    def _placed(self, raw: np.ndarray) -> tuple[np.ndarray, list[Place], np.ndarray]:
        """The events with places in the user's source, these places, and which events are kept.

        What happens in a function of the emulator's headers belongs to the line that calls it.
        """
        where = ["pc", "file", "line", "callers"]
        unique, inverse = np.unique(raw[where], return_inverse=True)
        found = [self._place_of(row) for row in unique]  # (counter in the source, place, direct)
        counters = np.array([pc for pc, _, _ in found], np.uint64)[inverse]
        in_source = np.array([place is not None for _, place, _ in found], bool)[inverse]
        direct = np.array([own for _, _, own in found], bool)[inverse]
        is_code = (raw["kind"] == CODE) | (raw["kind"] == BRANCH)
        kept = ~is_code | (in_source & direct)
        places = sorted({place for _, place, _ in found if place})
        number_of = {place: number for number, place in enumerate(places)}
        numbers = [number_of[place] if place else -1 for _, place, _ in found]

        events = np.zeros(len(raw), EVENT)
        for name in set(EVENT.names or ()) & set(_RAW.names or ()):
            events[name] = raw[name]
        events["place"] = np.array(numbers, np.int32)[inverse] if len(raw) else []
        events, counters = events[kept], counters[kept]
        events["site"] = _sites(events, counters)
        events["to"] = -1
        ways = np.flatnonzero(events["kind"] == BRANCH)
        ways = ways[ways + 1 < len(events)]  # the block comes right behind the way to it
        events["to"][ways] = events["site"][ways + 1]
        return events, places, kept

    def _place_of(self, row: Any) -> tuple[int, Place | None, bool]:
        """Program counter and place in the user's source; and whether the event itself is there."""
        kernel = self.kernel
        given = None
        if row["file"]:
            name = ctypes.string_at(int(row["file"])).decode(errors="replace")
            if kernel.in_source(name):
                given = Place(name, int(row["line"]))
        counters = [int(row["pc"]), *map(int, row["callers"])]
        for depth, pc in enumerate(counters):
            place = kernel.place_at(pc) if pc else None
            if place and kernel.in_source(place[0]):
                if given and place != given:  # a call further out: the counter tells nothing
                    break
                return pc, Place(*place), depth == 0
        return 0, given, False

    # ---- arrays -----------------------------------------------------------------------------

    def _arrays(self) -> list[TracedArray]:
        found: list[TracedArray] = []
        name = ctypes.create_string_buffer(64)
        low, size = ctypes.c_uint64(), ctypes.c_uint64()
        element, flags = ctypes.c_uint32(), ctypes.c_uint32()
        out = [name, *map(ctypes.byref, (low, size, element, flags))]
        while self.library.tg_region(len(found), *out):
            label = name.value.decode()
            initial = self.initial.get(label)
            dtype: np.dtype[Any] | None = None
            shape: tuple[int, ...] = (size.value // element.value,)
            if flags.value & (_SHARED | _OF_THE_MODULE):
                dtype, shape = self._declared(label, size.value, element.value)
                if flags.value & _SHARED:
                    initial = None
                elif initial is not None and dtype is not None:
                    initial = initial.view(dtype).reshape(shape)
            elif initial is not None and initial.nbytes == size.value:
                dtype, shape = initial.dtype, initial.shape
            space = "shared" if flags.value & _SHARED else "global"
            if flags.value & _OF_THE_MODULE and flags.value & _READ_ONLY:
                space = "constant"
            found.append(
                TracedArray(
                    label,
                    space,
                    size.value,
                    element.value,
                    dtype,
                    shape,
                    low.value % _ALIGNED,
                    initial,
                )
            )
        return found

    def _declared(
        self, name: str, size: int, element: int
    ) -> tuple[np.dtype[Any] | None, tuple[int, ...]]:
        """Dtype and shape of an array of the source, as far as the debug information has them."""
        dtype, shape = self.variables.arrays.get(name, (None, ()))
        if dtype is None or size % dtype.itemsize:
            return None, (size // element,)
        if math.prod(shape) * dtype.itemsize != size:
            shape = (size // dtype.itemsize,)
        return dtype, shape


def located(trace: Trace | None, findings: list[Finding]) -> dict[str, Any]:
    """Findings of a second launch, and the trace of the first one with them: each at the first
    event of its thread at its line."""
    if trace is None:
        return {"findings": findings}
    grid, block = trace.grid, trace.block_size
    found = []
    for finding in findings:
        event = len(trace)
        if finding.block and finding.thread and finding.line:
            place = Place(finding.file, finding.line)
            number = trace.places.index(place) if place in trace.places else -2
            x, y, z = finding.block
            at = trace.events["block"] == x + grid[0] * (y + grid[1] * z)
            x, y, z = finding.thread
            at &= trace.events["thread"] == x + block[0] * (y + block[1] * z)
            at &= trace.events["place"] == number
            event = int(at.argmax()) if at.any() else event
        found.append(replace(finding, event=event))
    return {"findings": found, "trace": replace(trace, findings=tuple(found))}


def _by_thread(events: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """The numbers of the events of each thread."""
    keys = events["block"].astype(np.uint64) * np.uint64(1024) + events["thread"]
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    parts = np.split(order, cuts) if len(order) else []
    return {(int(events["block"][p[0]]), int(events["thread"][p[0]])): p for p in parts}


def _sites(events: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """A number for the place of each event in the machine code, in the order of the code.

    Where no program counter is known, the event lies in the basic block that its thread was in.
    """
    order = np.lexsort([np.arange(len(events)), events["thread"], events["block"]])
    known = counters[order]
    first = np.ones(len(order), bool)
    for name in ("thread", "block"):
        column = events[name][order]
        first[1:] &= column[1:] == column[:-1]
    first[1:] = ~first[1:]
    last = np.where((known != 0) | first, np.arange(len(order)), 0)
    filled = np.empty(len(order), np.uint64)
    filled[order] = known[np.maximum.accumulate(last)] if len(order) else known
    rows = np.rec.fromarrays([filled, counters == 0, events["place"]])
    return np.unique(rows, return_inverse=True)[1].astype(np.int32)
