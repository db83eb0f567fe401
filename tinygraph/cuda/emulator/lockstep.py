"""A trace, thread after thread, put together again as warps execute it: lanes in lock step.

The emulator runs the threads of a block one after the other, each up to its next barrier.  A GPU
issues one instruction for all lanes of a warp that are at the same place.  Here the lanes of a warp
go on together wherever they are at the same place of the machine code, and of several places the
one that comes first has its turn:

    if (t < 16)      lanes 0..31
        a();         lanes 0..15, the others wait behind the branch
    b();             lanes 0..31 again

so a branch comes together behind it, and a loop is left together.  Of several warps the one goes on
whose thread came first in the run; a warp thus runs to the barrier, as in the run, and a warp that
spins lets the others go on.  The values are those of the run: where a race made them, a GPU may
come to others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

WARP = 32


class WarpStep(NamedTuple):
    """What the lanes of one warp do together.

    Attributes
    ----------
    warp, epoch : int
        Epoch: how many barriers the block has passed.
    lanes : list of int
        Rising.
    events : list of int
        The event of each of them: its number in the trace.
    """

    warp: int
    epoch: int
    lanes: list[int]
    events: list[int]


class Lanes:
    """The threads of one block: what each has still to do.

    Parameters
    ----------
    threads, epochs : sequences of int
        Of each event of the block, in the order in which they happened.
    places : sequence of tuples
        Where each event stands in the code.  Lanes at one place go on together; of several places
        the smallest goes first.
    meetings : sequence of int
        For a call of the warp, such as a shuffle, its number; other events have -1.  The lanes of
        a meeting go on together, when all of them have come.
    """

    def __init__(
        self,
        threads: Sequence[int],
        epochs: Sequence[int],
        places: Sequence[tuple[int, ...]],
        meetings: Sequence[int],
    ) -> None:
        self.epochs, self.places, self.meetings = epochs, places, meetings
        self.awaited = Counter(number for number in meetings if number >= 0)
        self.warps: dict[int, dict[int, deque[int]]] = {}
        for event, thread in enumerate(threads):
            lanes = self.warps.setdefault(thread // WARP, {})
            lanes.setdefault(thread % WARP, deque()).append(event)

    def steps(self) -> Iterator[WarpStep]:
        """The steps of all warps."""
        upcoming = {warp: self._next(warp) for warp in self.warps}
        while upcoming:
            step = min(upcoming.values(), key=lambda step: (step.epoch, min(step.events)))
            yield step
            lanes = self.warps[step.warp]
            for lane in step.lanes:
                lanes[lane].popleft()
                if not lanes[lane]:
                    del lanes[lane]
            if lanes:
                upcoming[step.warp] = self._next(step.warp)
            else:
                del upcoming[step.warp]

    def _next(self, warp: int) -> WarpStep:
        heads = {lane: queue[0] for lane, queue in self.warps[warp].items()}
        epoch = min(self.epochs[event] for event in heads.values())
        groups: dict[tuple[int, ...], list[int]] = {}  # lanes that can go on together
        for lane, event in heads.items():
            if self.epochs[event] == epoch:
                met = self.meetings[event]
                groups.setdefault((-1, met) if met >= 0 else self.places[event], []).append(lane)
        ready = [
            lanes
            for lanes in groups.values()
            if self.awaited.get(self.meetings[heads[lanes[0]]], 0) <= len(lanes)
        ]
        first = min(ready, key=lambda lanes: min(self.places[heads[lane]] for lane in lanes))
        lanes = sorted(first)
        return WarpStep(warp, epoch, lanes, [heads[lane] for lane in lanes])
