"""Costs: calls of ops and kernels with what they take, move and compute, and tables of them.

One row says it for all: a launch of a graph before it runs, a kernel's launches in a step, what an
op took in a lap of the stopwatch.  They are added up, printed and written as JSON in one way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

from tinygraph.base.text_table import aligned, digits, prefix

Extent = tuple[int, int, int]


@dataclass(frozen=True)
class Cost:
    """Some calls of an op or a kernel; None stands for what nobody knows of them.

    Attributes
    ----------
    phase : str
        "forward" or "backward".
    op : str
        The op's name; an optimiser's for its update; "gradient sums" for what the engine adds up
        and keeps.
    kernel : str
        With template arguments.
    macros : dict of str
        Of the kernel.
    grid, block : (x, y, z)
        Of a launch.
    shared : int
        Its bytes of dynamic shared memory.
    calls : float
        Forward and backward, or tiles of a plan, each counted.
    forward_seconds, backward_seconds, update_seconds, kernel_seconds, outside_seconds : float
        Wall time; `seconds` is that of all parts together.
    thread_seconds : float
        The time of all threads that were in it, added up.
    bytes : float
        Of an op each array that it was given, saved or returned, once.  Of a kernel what must move
        between it and global memory: each array once for reading, once for writing.
    operations : float
        Floating-point operations of the mathematics, as the kernel's file states them.
    arrays : float
        Requests for memory.
    new_arrays, new_bytes : float
        Those that were answered with a new array.
    registers, spills : int
        Of a thread; the spills in bytes.
    occupancy : float
        The share of a multiprocessor's warps that the kernel can keep busy, the smallest over its
        launches.
    predicted_seconds : float
        On a GPU that is not there; see tinygraph/watch/prediction.py.  No part of `seconds`.
    bound_by : str
        What the most of it goes into: "memory", "issue", "arithmetic" or "start".
    reads, writes : tuple of NamedArray
        Of a launch.
    """

    phase: str | None = None
    op: str | None = None
    kernel: str | None = None
    macros: dict[str, str] | None = None
    grid: Extent | None = None
    block: Extent | None = None
    shared: int | None = None
    calls: float = 1
    forward_seconds: float | None = None
    backward_seconds: float | None = None
    update_seconds: float | None = None
    kernel_seconds: float | None = None
    outside_seconds: float | None = None
    thread_seconds: float | None = None
    bytes: float = 0
    operations: float | None = None
    arrays: float | None = None
    new_arrays: float | None = None
    new_bytes: float | None = None
    registers: int | None = None
    spills: int | None = None
    occupancy: float | None = None
    predicted_seconds: float | None = None
    bound_by: str | None = None
    reads: tuple[Any, ...] | None = None
    writes: tuple[Any, ...] | None = None

    @property
    def seconds(self) -> float | None:
        """All parts together; None where no part was timed."""
        known = [part for part in (getattr(self, name) for name in PARTS) if part is not None]
        return sum(known) if known else None

    @property
    def label(self) -> str:
        """The kernel with its macros."""
        macros = (self.macros or {}).items()
        return " ".join([self.kernel or "", *[f"{name}={value}" for name, value in macros]])


PARTS = (
    "forward_seconds",
    "backward_seconds",
    "update_seconds",
    "kernel_seconds",
    "outside_seconds",
)
NUMBERS = (
    "calls",
    *PARTS,
    "thread_seconds",
    "bytes",
    "operations",
    "arrays",
    "new_arrays",
    "new_bytes",
    "predicted_seconds",
)


def combined(costs: Sequence[Cost], how: Callable[[list[float]], float] = sum) -> Cost:
    """One row for several: what the first one is, and `how` of each number of all.

    >>> relu, twice = Cost(op="relu", bytes=8, operations=2), Cost(op="relu", bytes=4)
    >>> both = combined([relu, twice])  # operations: not known of one, not known of both
    >>> both.op, both.calls, both.bytes, both.operations, both.seconds
    ('relu', 2, 12, None, None)
    """
    numbers: dict[str, Any] = {}
    for name in NUMBERS:
        values = [getattr(cost, name) for cost in costs]
        enough = all if name == "operations" else any
        if enough(value is not None for value in values):
            numbers[name] = how([value or 0 for value in values])
    return replace(costs[0], **{**dict.fromkeys(NUMBERS), **numbers})


@dataclass(frozen=True)
class CostTable(Sequence[Cost]):
    """Rows; `print` shows them, with a column for everything that one of them knows.

    Attributes
    ----------
    rows : tuple of Cost
    notes : tuple of str
        Lines below the table.
    """

    rows: tuple[Cost, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> Cost:
        """The sums over all rows, with those operations that are known."""
        nothing = Cost(calls=0, operations=0)
        return combined([nothing, *[replace(r, operations=r.operations or 0) for r in self.rows]])

    @property
    def seconds(self) -> float | None:
        return self.total.seconds

    @property
    def bytes(self) -> float:
        return self.total.bytes

    @property
    def operations(self) -> float:
        return self.total.operations or 0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, as JSON takes them.

        Rows stand under "ops" or "kernels"; what none of them knows is left out.
        """
        known = [field.name for field in fields(Cost) if self._knows(field.name)]
        rows = [{name: row[name] for name in known} for row in map(asdict, self.rows)]
        if seconds := self.seconds:
            for row, cost in zip(rows, self.rows, strict=True):
                row |= {"seconds": cost.seconds, "share": (cost.seconds or 0.0) / seconds}
        own = [field.name for field in fields(self) if field.name not in ("rows", "notes")]
        about = {name: getattr(self, name) for name in (*own, "seconds", "bytes", "operations")}
        kind = "ops" if self.rows and self.rows[0].kernel is None else "kernels"
        return {**about, "notes": list(self.notes), kind: rows}

    def _knows(self, name: str) -> bool:
        return any(getattr(row, name) is not None for row in self.rows)

    def __str__(self) -> str:
        total = self.total
        columns = [column for column in _columns(total) if self._knows(column.known)]
        lines = [[column.cell(row) for column in columns] for row in (*self.rows, total)]
        lines[-1][0] = "total"
        left = [i for i, column in enumerate(columns) if column.known in TEXTS]
        return "\n".join([*aligned([[c.head for c in columns], *lines], left), *self.notes])


# ---- columns ------------------------------------------------------------------------------------


TEXTS = ("phase", "op", "kernel", "grid", "block", "bound_by", "reads")


class _Column(NamedTuple):
    known: str  # it stands where some row knows this
    head: str
    cell: Callable[[Cost], str]


def _columns(total: Cost) -> list[_Column]:
    """In units of which the total has at least ten, for its time, and one, for the rest."""
    second, clock = _unit(total.seconds)
    soon = _unit(total.predicted_seconds)
    byte, operation, new = (
        prefix(number or 0) for number in (total.bytes, total.operations, total.new_bytes)
    )

    def time(seconds: float | None) -> str:
        return "-" if seconds is None else f"{seconds / second:.2f}"

    def expected(seconds: float | None) -> str:
        return "-" if seconds is None else f"{seconds / soon[0]:.2f}"

    def giga(number: float | None, row: Cost) -> str:
        return digits((number or 0) / (row.seconds or math.inf) / 1e9)

    def moves(row: Cost) -> str:
        if row.reads is None or row.writes is None:
            return ""
        return f"{', '.join(map(str, row.reads))} -> {', '.join(map(str, row.writes))}"

    return [
        _Column("phase", "phase", lambda row: row.phase or ""),
        _Column("op", "op", lambda row: row.op or ""),
        _Column("kernel", "kernel", lambda row: row.label),
        _Column("grid", "grid", lambda row: _extent(row.grid)),
        _Column("block", "block", lambda row: _extent(row.block)),
        _Column("calls", "calls", lambda row: digits(row.calls)),
        _Column("forward_seconds", f"forward {clock}", lambda row: time(row.forward_seconds)),
        _Column("backward_seconds", f"backward {clock}", lambda row: time(row.backward_seconds)),
        _Column("seconds", clock, lambda row: time(row.seconds)),
        _Column("seconds", "share", lambda r: f"{(r.seconds or 0) / (total.seconds or 1):.1%}"),
        _Column("bytes", f"{byte[1]}B", lambda row: digits(row.bytes / byte[0])),
        _Column("seconds", "GB/s", lambda row: giga(row.bytes, row)),
        _Column(
            "bytes", f"{operation[1]}FLOP", lambda row: digits((row.operations or 0) / operation[0])
        ),
        _Column("seconds", "GFLOP/s", lambda row: giga(row.operations, row)),
        _Column("registers", "registers", lambda row: digits(row.registers)),
        _Column(
            "occupancy",
            "occupancy",
            lambda row: "-" if row.occupancy is None else f"{row.occupancy:.0%}",
        ),
        _Column(
            "predicted_seconds", f"predicted {soon[1]}", lambda r: expected(r.predicted_seconds)
        ),
        _Column("bound_by", "bound by", lambda row: row.bound_by or ""),
        _Column("new_arrays", "new arrays", lambda row: f"{row.new_arrays or 0:g}"),
        _Column("new_arrays", f"new {new[1]}B", lambda row: digits((row.new_bytes or 0) / new[0])),
        _Column("reads", "reads -> writes", moves),
    ]


def _unit(seconds: float | None) -> tuple[float, str]:
    return (1e-3, "ms") if (seconds or 0.0) >= 1e-2 else (1e-6, "us")


def _extent(sizes: Extent | None) -> str:
    """Without ones at the end: 4x2."""
    if sizes is None:
        return ""
    used = max([1, *[i + 1 for i in range(3) if sizes[i] > 1]])
    return "x".join(map(str, sizes[:used]))
