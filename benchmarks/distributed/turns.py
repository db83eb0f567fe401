"""Rounds in which one process and two ranks take turns, and what other programs did meanwhile."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cpu.client import Client
from benchmarks.cpu.measure import COMPARED, MOST_STEPS, PAUSE, agree
from benchmarks.timing import Ratio, Times

UNDISTURBED = 0.1  # cores that other programs may take in a round
PATIENCE = 4  # times as many rounds are made, where they do
SUMS = 20
BLAS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Side(NamedTuple):
    """A way of taking the step."""

    name: str
    ranks: int
    threads: int
    variant: str = "compiled"


ONE, THREADS, RANKS = SIDES = (
    Side("one thread", 1, 1),
    Side("two threads", 1, 2),
    Side("two ranks", 2, 1),
)
AT_END, BUCKETS = OVERLAP = (
    Side("sent at the end", 2, 1, "eager"),
    Side("sent in buckets", 2, 1, "buckets"),
)


def start(side: Side, point: str) -> Client:
    """The launch of a side."""
    command = [sys.executable, "-m", "benchmarks.distributed.worker"]
    command += [point, str(side.threads), side.variant]
    if side.ranks > 1:
        mpiexec = Path(sys.executable).parent / "mpiexec"  # not resolved: that of the environment
        command = [str(mpiexec), "-n", str(side.ranks), *command]
    count = str(side.threads)
    return Client(command, {**os.environ, **dict.fromkeys(BLAS_VARIABLES, count)})


class Burst(NamedTuple):
    """Seconds of a step, and the cores that other programs took."""

    seconds: float
    others: float


Round = Mapping[str, Burst]  # by side


@dataclass(frozen=True)
class Point:
    """What was measured of one network.

    Attributes
    ----------
    gradient, sent : int
        Bytes of all gradients, and what a rank sends in a step.
    sum_seconds : float
        Of adding up as many numbers over two ranks, and nothing else.
    rounds : sequence of Round
        Those that count; `made`: how many there were.
    """

    name: str
    gradient: int
    sent: int
    sum_seconds: float
    rounds: Sequence[Round]
    made: int

    def times(self, side: Side) -> Times:
        return Times.by_wall(each[side.name].seconds for each in self.rounds)

    def efficiency(self, side: Side) -> Ratio:
        """t(one thread) / (2 t(side)), round by round."""
        ratio = Ratio.of(self.times(side), self.times(ONE))
        return Ratio(tuple(value / 2 for value in ratio.values))

    @property
    def overlap(self) -> Ratio:
        """t(sent in buckets) / t(sent at the end), round by round."""
        return Ratio.of(self.times(AT_END), self.times(BUCKETS))

    @property
    def others(self) -> float:
        """The most that other programs took in a round that counts."""
        return max(map(disturbed, self.rounds))


def disturbed(taken: Round) -> float:
    """The most that other programs took in a round."""
    return max(burst.others for burst in taken.values())


def calmest(rounds: Sequence[Round], count: int) -> list[Round]:
    """So many rounds in which other programs took least, in their order.

    >>> made = [{"a": Burst(1.0, others)} for others in (0.5, 0.0, 0.2)]
    >>> [disturbed(each) for each in calmest(made, 2)]
    [0.0, 0.2]
    """
    chosen = sorted(range(len(rounds)), key=lambda at: disturbed(rounds[at]))[:count]
    return [rounds[at] for at in sorted(chosen)]


def measure(
    point: str,
    rounds: int,
    burst: float,
    limit: float = math.inf,
    sides: Sequence[Side] = SIDES,
) -> Point:
    """All sides of one network: equal losses first, then turns, within so many seconds."""
    clients: dict[Side, Client] = {}
    try:
        for side in sides:
            clients[side] = start(side, point)
        losses = [client.ask(f"losses {COMPARED}")["losses"] for client in clients.values()]
        for each in losses:
            agree(each, losses[0])
        steps = dict.fromkeys(sides, 1)
        first = _round(clients, steps, sides)
        for side in sides:
            share = burst / max(first[side.name].seconds, 1e-9)
            steps[side] = max(1, min(MOST_STEPS, math.ceil(share)))
        made: list[Round] = []
        end = time.monotonic() + limit
        while not made or (not _enough(made, rounds) and time.monotonic() < end):
            made.append(_round(clients, steps, sides if len(made) % 2 else sides[::-1]))
        alone: dict[str, Any] = clients[sides[-1]].ask(f"sum {SUMS}")
    finally:
        for client in clients.values():
            client.close()
    each_sum = float(alone["seconds"]) / SUMS
    found = calmest(made, rounds)
    return Point(point, int(alone["gradient"]), int(alone["sent"]), each_sum, found, len(made))


def _enough(made: Sequence[Round], rounds: int) -> bool:
    calm = sum(disturbed(each) <= UNDISTURBED for each in made)
    return calm >= rounds or len(made) >= PATIENCE * rounds


def _round(
    clients: Mapping[Side, Client], steps: Mapping[Side, int], order: Sequence[Side]
) -> Round:
    found = {}
    for side in order:
        time.sleep(PAUSE)
        answer = clients[side].ask(f"run {steps[side]}")
        found[side.name] = Burst(float(answer["seconds"]) / steps[side], float(answer["others"]))
    return found
