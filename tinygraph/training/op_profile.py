"""Profile of a step on the cpu: what each op takes, moves and computes, and what is left.

Steps with a stopwatch and steps without one take turns.  Each number of the table is the median
over the steps with one; the whole is the sum of the lines.  Steps without one tell what a step
takes when nobody watches.

On several threads times are wall time: what two threads compute at once is half of the time each.
The processor time, of all threads of the process together, stands below the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tinygraph.errors import ArgumentError
from tinygraph.text_table import aligned, digits, prefix
from tinygraph.training.op_operations import operations_of
from tinygraph.training.stopwatch import Key, Lap, Stopwatch

WARMING_UP = 2  # steps before: a plan is made in the first, its buffers are in use from the second


@dataclass(frozen=True)
class OpRow:
    """One kind of op, all of its calls in a step together.

    Attributes
    ----------
    op : str
        The op's name; an optimiser's for its update; "gradient sums" for what the engine adds up
        and keeps.
    calls : float
        Forward and backward, or tiles of a plan, each counted.
    forward_seconds, backward_seconds, update_seconds : float or None
        Wall time; None where it has no such part.
    thread_seconds : float
        The time of all threads that were in it, added up.
    bytes : float
        Each array that a call was given, saved or returned, once.
    operations : float or None
        Floating-point operations, as the op's kernel or the optimiser states them; None where
        neither does.
    arrays : float
        Requests for memory.
    new_arrays, new_bytes : float
        Those that were answered with a new array.
    """

    op: str
    calls: float = 0.0
    forward_seconds: float | None = None
    backward_seconds: float | None = None
    update_seconds: float | None = None
    thread_seconds: float = 0.0
    bytes: float = 0.0
    operations: float | None = None
    arrays: float = 0.0
    new_arrays: float = 0.0
    new_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """All parts together."""
        parts = (self.forward_seconds, self.backward_seconds, self.update_seconds)
        return sum([part for part in parts if part is not None])


@dataclass(frozen=True)
class OpProfile:
    """The ops of a step.

    Attributes
    ----------
    steps : int
        How many were watched.
    rows : tuple of OpRow
        The longest first.
    outside_seconds : float
        Wall time in which no thread was in any op: Python between the ops.
    threads : int
        How many were in ops.
    processor_seconds : float
        Of a watched step: all threads of the process together, those of BLAS too.
    plain_seconds : float
        Wall time of a step that was not watched.
    """

    steps: int
    rows: tuple[OpRow, ...]
    outside_seconds: float
    threads: int
    processor_seconds: float
    plain_seconds: float

    @property
    def seconds(self) -> float:
        """Wall time of a watched step: the sum of the lines."""
        return sum([row.seconds for row in self.rows]) + self.outside_seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, as JSON takes them."""
        return {
            "device": "cpu",
            "steps": self.steps,
            "threads": self.threads,
            "seconds": self.seconds,
            "outside_seconds": self.outside_seconds,
            "plain_seconds": self.plain_seconds,
            "processor_seconds": self.processor_seconds,
            "ops": [
                {**asdict(row), "seconds": row.seconds, "share": row.seconds / self.seconds}
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        return "\n".join([*_table(self), self._note()])

    def _note(self) -> str:
        how = (
            ""
            if self.threads == 1
            else (
                f"ops on {self.threads} threads: times are wall time, what several compute at once "
                "is shared among them\n"
            )
        )
        return (
            f"{how}medians of {self.steps} steps; processor time of a step "
            f"{self.processor_seconds * 1e3:.3f} ms; without the stopwatch a step takes "
            f"{self.plain_seconds * 1e3:.3f} ms"
        )


def profile_ops(step: Callable[[], Any], steps: int = 10) -> OpProfile:
    """Run a step some times and say what its ops take on the cpu.

    Parameters
    ----------
    step : function without arguments
        Eager, or compiled.  It is run twice before, and once without a stopwatch for each time
        with one.
    steps : int
        At least 1.

    Raises
    ------
    ArgumentError
        A number of steps below 1, or a step that applies no op on the cpu.

    Examples
    --------
    >>> import tinygraph as tg
    >>> x, w = tg.zeros((64, 100)), tg.Parameter(tg.zeros((10, 100)))
    >>> profile = profile_ops(lambda: tg.linear(x, w).sum().backward(), steps=3)
    >>> row = next(row for row in profile.rows if row.op == "linear")
    >>> row.calls, row.operations  # forward, and backward for w alone
    (2.0, 256000)
    >>> abs(sum(row.seconds for row in profile.rows) + profile.outside_seconds
    ...     - profile.seconds) < 1e-12
    True
    """
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise ArgumentError("profile", "steps", "an int of at least 1", repr(steps))
    for _ in range(WARMING_UP):
        step()
    watch, plain = Stopwatch(), []
    for _ in range(steps):
        started = time.perf_counter()
        step()
        plain.append(time.perf_counter() - started)
        with watch.lap():
            step()
    laps = watch.laps
    if not any(lap.work for lap in laps):
        raise ArgumentError("profile", "step", "one that applies ops to tensors on the cpu", "none")
    rows = sorted(_rows(laps), key=lambda row: -row.seconds)
    return OpProfile(
        steps,
        tuple(rows),
        median([lap.outside for lap in laps]),
        max([lap.threads for lap in laps]),
        median([lap.processor for lap in laps]),
        median(plain),
    )


def _rows(laps: Sequence[Lap]) -> list[OpRow]:
    """A row for each name, with the medians over the laps."""
    names = list(dict.fromkeys(name for lap in laps for _, name in lap.counts))
    operations = _operations(laps[-1])
    rows = []
    for name in names:
        keys = list(dict.fromkeys(k for lap in laps for k in lap.counts if k[1] == name))
        seconds = {phase: _median(laps, [(phase, name)], _seconds) for phase, _ in keys}
        rows.append(
            OpRow(
                name,
                _median(laps, keys, lambda lap, k: lap.counts[k].calls),
                seconds.get("forward"),
                seconds.get("backward"),
                seconds.get("update"),
                _median(laps, keys, lambda lap, k: lap.thread_seconds.get(k, 0.0)),
                _median(laps, keys, lambda lap, k: lap.counts[k].bytes),
                operations.get(name),
                _median(laps, keys, lambda lap, k: lap.counts[k].arrays),
                _median(laps, keys, lambda lap, k: lap.counts[k].new_arrays),
                _median(laps, keys, lambda lap, k: lap.counts[k].new_bytes),
            )
        )
    return rows


def _seconds(lap: Lap, key: Key) -> float:
    return lap.seconds.get(key, 0.0)


def _median(laps: Sequence[Lap], keys: Iterable[Key], number: Callable[[Lap, Key], float]) -> float:
    """Over the laps, of the sum over some keys."""
    return float(median([sum([number(lap, key) for key in keys]) for lap in laps]))


def _operations(lap: Lap) -> dict[str, int | None]:
    """For each op the operations of a step; None where those of one of its calls are not known."""
    found: dict[str, int | None] = {}
    known: dict[Any, tuple[int | None, int | None]] = {}
    for work in lap.work:
        phase, name = work.key
        call = id(work.op), work.specs, work.needs
        if call not in known:
            known[call] = operations_of(work.op, work.specs, work.needs)
        operations = known[call][phase == "backward"]
        before = found.get(name, 0)
        found[name] = None if None in (before, operations) else (before or 0) + (operations or 0)
    return {**found, **{name: stated for (_, name), stated in lap.operations.items()}}


# ---- the table ----------------------------------------------------------------------------------


def _table(profile: OpProfile) -> list[str]:
    """Lines of text: the ops, what is left, and the step."""
    rows = profile.rows
    moved, done, new = (
        sum([getattr(row, name) or 0.0 for row in rows])
        for name in ("bytes", "operations", "new_bytes")
    )
    units = _Units(profile.seconds, moved, done, new)
    total = OpRow(
        "a step",
        sum([row.calls for row in rows]),
        forward_seconds=sum([row.forward_seconds or 0.0 for row in rows]),
        backward_seconds=sum([row.backward_seconds or 0.0 for row in rows]),
        bytes=moved,
        operations=done,
        new_arrays=sum([row.new_arrays for row in rows]),
        new_bytes=new,
    )
    left = OpRow("outside of ops")
    lines = [
        units.header(),
        *[units.cells(row, row.seconds) for row in rows],
        [*units.cells(left, profile.outside_seconds)[:6], *[""] * 6],
        units.cells(total, profile.seconds),
    ]
    lines[-2][1] = ""
    return aligned(lines)


class _Units:
    """Units in which a step has at least ten, for its time, and one, for what it moves and does."""

    def __init__(self, seconds: float, moved: float, done: float, new: float) -> None:
        self.step = seconds
        self.seconds = (1e-3, "ms") if seconds >= 1e-2 else (1e-6, "us")
        self.moved, self.done, self.new = (prefix(total) for total in (moved, done, new))

    def header(self) -> list[str]:
        time = self.seconds[1]
        return [
            "op",
            "calls",
            f"forward {time}",
            f"backward {time}",
            time,
            "share",
            f"{self.moved[1]}B",
            "GB/s",
            f"{self.done[1]}FLOP",
            "GFLOP/s",
            "new arrays",
            f"new {self.new[1]}B",
        ]

    def cells(self, row: OpRow, seconds: float) -> list[str]:
        return [
            row.op,
            f"{row.calls:g}",
            self._time(row.forward_seconds),
            self._time(row.backward_seconds),
            self._time(seconds),
            f"{seconds / self.step:.1%}",
            digits(row.bytes / self.moved[0]),
            digits(row.bytes / (seconds or 1) / 1e9),
            digits(None if row.operations is None else row.operations / self.done[0]),
            digits((row.operations or 0) / (seconds or 1) / 1e9),
            f"{row.new_arrays:g}",
            digits(row.new_bytes / self.new[0]),
        ]

    def _time(self, seconds: float | None) -> str:
        return "-" if seconds is None else f"{seconds / self.seconds[0]:.2f}"
