"""One point measured: all sides agree on three losses first, then bursts of steps take turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.cpu.client import Client, SideFailed, SideNotOffered
from benchmarks.cpu.sides import Side
from benchmarks.timing import Ratio, Times

COMPARED = 3  # steps whose losses must agree
AGREE = 1e-3  # relative difference
BURST = 0.2  # seconds that a burst should last
MOST_STEPS = 5000  # of a burst
PAUSE = 0.05  # seconds between bursts: threads of the last side stop looking for work

Start = Callable[[Side, str], Client]


@dataclass(frozen=True)
class Measured:
    """What one side showed at one point; peak is in bytes."""

    times: Times
    peak: int
    about: str
    losses: tuple[float, ...]


@dataclass
class Point:
    """All sides at one point.

    Attributes
    ----------
    name : str
        Such as "w1:100:256".
    measured : dict
        By the name of the side, in the order of the table.
    left_out : list of str
        Which side is missing, and why.
    failed : list of str
        The same of tinygraph's own sides that broke or disagree with the others.
    """

    name: str
    measured: dict[str, Measured] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def ratio(self, side: str, baseline: str) -> Ratio | None:
        """How many times as long as the baseline a side takes: below 1 it is faster."""
        if side not in self.measured or baseline not in self.measured:
            return None
        return Ratio.of(self.measured[baseline].times, self.measured[side].times)

    def leave_out(self, side: Side, reason: SideFailed) -> None:
        line = f"{self.name}, {side.name}: {reason}"
        self.left_out.append(line)
        if side.ours and not isinstance(reason, SideNotOffered):
            self.failed.append(line)


def measure(
    name: str, sides: Sequence[Side], start: Start, rounds: int, burst: float = BURST
) -> Point:
    """Start every side at a point, compare losses, time, and ask for the peak memory."""
    point = Point(name)
    clients: dict[Side, Client] = {}
    losses: dict[Side, tuple[float, ...]] = {}
    try:
        for side in sides:
            try:
                clients[side] = start(side, name)
                losses[side] = tuple(clients[side].ask(f"losses {COMPARED}")["losses"])
                agree(losses[side], next(iter(losses.values())))
            except SideFailed as reason:
                _drop(point, clients, side, reason)
                losses.pop(side, None)
        seconds = _in_turns(point, clients, rounds, burst)
        for side, client in list(clients.items()):
            try:
                peak = int(client.ask("peak")["bytes"])
            except SideFailed as reason:
                _drop(point, clients, side, reason)
                continue
            times = Times.by_wall(seconds[side])
            point.measured[side.name] = Measured(times, peak, client.about, losses[side])
    finally:
        for client in clients.values():
            client.close()
    return point


def agree(losses: Sequence[float], want: Sequence[float]) -> None:
    """Refuse losses that are not finite or differ from those of the first side.

    >>> agree([2.3, 2.2], [2.3, 2.2001])
    >>> agree([2.3, 2.1], [2.3, 2.2])
    Traceback (most recent call last):
        ...
    benchmarks.cpu.client.SideFailed: its losses disagree: 2.3 2.1, the first side has 2.3 2.2
    """
    close = [math.isclose(a, b, rel_tol=AGREE) for a, b in zip(losses, want, strict=True)]
    if not all(close) or not all(map(math.isfinite, losses)):
        own, first = (" ".join(f"{value:.6g}" for value in values) for values in (losses, want))
        raise SideFailed(f"its losses disagree: {own}, the first side has {first}")


def _in_turns(
    point: Point, clients: dict[Side, Client], rounds: int, burst: float
) -> dict[Side, list[float]]:
    """Seconds of a step in each round; a side that fails on the way is dropped from all rounds.

    Every other round goes through the sides backwards, so that none always follows the same one.
    """
    steps: dict[Side, int] = {}
    seconds: dict[Side, list[float]] = {side: [] for side in clients}
    for turn in range(rounds + 1):  # the first tells how many steps make a burst
        order = list(clients) if turn % 2 else list(reversed(clients))
        for side in order:
            count = steps.get(side, 1)
            time.sleep(PAUSE)
            try:
                took = float(clients[side].ask(f"run {count}")["seconds"]) / count
            except SideFailed as reason:
                _drop(point, clients, side, reason)
                continue
            if turn:
                seconds[side].append(took)
            else:
                steps[side] = max(1, min(MOST_STEPS, math.ceil(burst / max(took, 1e-9))))
    return seconds


def _drop(point: Point, clients: dict[Side, Client], side: Side, reason: SideFailed) -> None:
    point.leave_out(side, reason)
    if side in clients:
        clients.pop(side).close()
