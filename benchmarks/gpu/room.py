"""The room in which sections measure: which device, which clock, and runs that take turns.

Everything that is compared takes turns, round by round, so that a machine whose speed drifts slows
all alike.  A figure is the median of the rounds, with the smallest and the largest; a ratio is the
median of the ratios of each round.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.timing import Times, Timing

Run = Callable[[], object]

ROUNDS = {"rehearse": 2, "quick": 5, "full": 9}
BURST = 0.02  # seconds: so long a run is repeated for one figure
MOST_REPEATS = 1000


class Clock(Protocol):
    """Says how long a run takes."""

    def timing(self, run: Run, repeats: int) -> Timing:
        """Of one run, where so many follow one another."""


class WallClock:
    """The clock of the host, for runs that are done when they return."""

    def timing(self, run: Run, repeats: int) -> Timing:
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        seconds = (time.perf_counter() - start) / repeats
        return Timing(seconds, seconds)


class EventClock:
    """CUDA events on the default stream, which waits for the streams of CuPy and of PyTorch.

    A run that works on a stream which does not wait for the default one would look too fast.  The
    wall clock, read after the device is idle, tells: see `Times.marked`.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def timing(self, run: Run, repeats: int) -> Timing:
        cuda = self._cupy.cuda
        first, last = cuda.Event(), cuda.Event()
        cuda.Device().synchronize()
        start = time.perf_counter()
        first.record(cuda.Stream.null)
        for _ in range(repeats):
            run()
        last.record(cuda.Stream.null)
        cuda.Device().synchronize()
        wall = time.perf_counter() - start
        return Timing(cuda.get_elapsed_time(first, last) / 1e3 / repeats, wall / repeats)


@dataclass(frozen=True)
class Room:
    """What a section needs to know of this run.

    Attributes
    ----------
    device : str
        "cuda"; in a rehearsal "emulator", or "cuda" on a driver that needs no GPU.
    clock : Clock
    torch : torch_side.TorchSide or None
        PyTorch, where it is installed (and can use the GPU).
    rehearse, quick : bool
        Tiny sizes on the CPU; fewer sizes.
    before : str
        What an earlier call, which was stopped, has left of the section on the page.
    """

    device: str
    clock: Clock
    torch: Any = None
    rehearse: bool = False
    quick: bool = False
    before: str = ""
    _hearers: list[Callable[[Any], None]] = field(default_factory=list, repr=False, compare=False)

    def on_news(self, hearer: Callable[[Any], None]) -> None:
        """Who is told what a section has found so far."""
        self._hearers.append(hearer)

    def tell(self, result: Any) -> None:
        """Put what a section has found so far on the page: it stays if the section is stopped."""
        for hearer in self._hearers:
            hearer(result)

    def peer(self, name: str, stand_in: str) -> str:
        """What the other side is called: a rehearsal has not met the real one."""
        return stand_in if self.rehearse else name

    @property
    def rounds(self) -> int:
        return ROUNDS["rehearse" if self.rehearse else "quick" if self.quick else "full"]

    def choose(self, full: list[Any], quick: list[Any], rehearsed: list[Any]) -> list[Any]:
        """The sizes of this run."""
        return rehearsed if self.rehearse else quick if self.quick else full

    def in_turns(self, runs: Mapping[str, Run]) -> dict[str, Times]:
        """Times of each run.  The first two calls of each warm up, and tell how often to repeat."""
        repeats = {}
        for name, run in runs.items():
            self.clock.timing(run, 1)
            once = self.clock.timing(run, 1).wall
            most = 1 if self.rehearse else MOST_REPEATS
            repeats[name] = max(1, min(most, math.ceil(BURST / max(once, 1e-9))))
        rounds: dict[str, list[Timing]] = {name: [] for name in runs}
        for _ in range(self.rounds):
            for name, run in runs.items():
                rounds[name].append(self.clock.timing(run, repeats[name]))
        return {name: Times(tuple(timings)) for name, timings in rounds.items()}
