"""The events of one block of a trace, as the lanes of warps meet in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.cuda.emulator.lockstep import WARP
from tinygraph.cuda.emulator.trace import KINDS, Trace
from tinygraph.cuda.stepping.cells import as_json

ACCESSES = ("read", "write", "atomic")
MEETINGS = ("syncwarp", "shuffle", "vote", "exchange")
_CALLED = {  # what the page calls the kinds of a trace
    "load": "read",
    "store": "write",
    "branch": "code",
    "syncwarp": "meet",
    "shuffle": "exchange",
    "vote": "exchange",
}
_KEPT = 16  # bytes of a value in a trace


class Events:
    """The events of one block, without those that say that a barrier opens or a thread ends.

    Attributes
    ----------
    numbers : list of int
        Of the events in the trace.
    threads, epochs, arrays, offsets, sizes : list of int
        As in the trace, one for each event.
    kinds : list of str
        "code", "read", "write", "atomic", "barrier", "meet", "exchange", or "stop" for an access
        before which the checker stopped the thread.
    ended : set of int
        Threads that have left the kernel.
    """

    def __init__(self, trace: Trace, block: int, files: Sequence[str]) -> None:
        self.trace, self.files = trace, files
        of_block = trace.events["block"] == block
        kinds = np.array(KINDS)[trace.events["kind"]]
        self.ended = set(trace.events["thread"][of_block & (kinds == "end")].tolist())
        kept = of_block & (kinds != "end") & (kinds != "release")
        self.numbers = np.flatnonzero(kept).tolist()
        self._events = trace.events[kept]
        self._kinds: list[str] = kinds[kept].tolist()
        self.refused = self._events["refused"].tolist()
        self.kinds = [
            "stop" if refused else _CALLED.get(kind, kind)
            for kind, refused in zip(self._kinds, self.refused, strict=True)
        ]
        columns = ("thread", "epoch", "array", "offset", "size")
        self.threads, self.epochs, self.arrays, self.offsets, self.sizes = (
            self._events[name].tolist() for name in columns
        )
        self._places = self._events["place"].tolist()
        self._masks = self._events["mask"].tolist()
        self._changes: dict[int, deque[tuple[int, int, int]]] = {}
        changes = trace.changes[trace.changes["block"] == block]
        names = ("thread", "event", "variable", "value")
        for thread, *change in zip(*(changes[name].tolist() for name in names), strict=True):
            self._changes.setdefault(thread, deque()).append(tuple(change))

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        """Where each event is in the machine code, and what it does there.

        What is refused comes last: it is the last that happens in a launch.
        """
        columns = [self._events[name].tolist() for name in ("refused", "site", "kind")]
        is_access = [kind in ACCESSES for kind in self.kinds]
        arrays = np.where(is_access, self.arrays, 0).tolist()
        sizes = np.where(is_access, self.sizes, 0).tolist()
        return list(zip(*columns, arrays, sizes, strict=True))

    @cached_property
    def meetings(self) -> list[int]:
        """The number of the call of a warp that an event belongs to, -1 for others.

        The run time notes the lanes of a call one after the other, from the first on.
        """
        found: list[int] = []
        number, last = -1, None
        for event, kind in enumerate(self._kinds):
            if kind not in MEETINGS:
                last = None
                found.append(-1)
                continue
            warp, lane = divmod(self.threads[event], WARP)
            here = kind, warp, self._masks[event]
            if last is None or last[0] != here or last[1] >= lane:
                number += 1
            last = here, lane
            found.append(number)
        return found

    def line(self, event: int) -> tuple[int, int]:
        """The number of the file and of the line; 0 for none."""
        place = self.trace.places[self._places[event]] if self._places[event] >= 0 else None
        return (self.files.index(place.file), place.line) if place else (0, 0)

    def data(self, event: int) -> bytes:
        """What an access read, or what lies there after it; the first 16 bytes."""
        return bytes(self._events["value"][event].tobytes()[: min(self.sizes[event], _KEPT)])

    def exchanged(self, events: list[int]) -> list[tuple[str, list[Any]]]:
        """What lanes give to a call of their warp and what they get, by name."""
        kind = self._kinds[events[0]]
        if kind not in ("shuffle", "vote"):
            return []
        given = [_word(int(self._events["before"][event])) for event in events]
        taken = [int(self._events["value"][event][0]) for event in events]
        if kind == "vote":
            return [("votes", given), ("gets", [f"{ballot:#x}" for ballot in taken])]
        sources = self._events["source"][events].tolist()
        return [("gives", given), ("of lane", sources), ("gets", list(map(_word, taken)))]

    def news(self, thread: int, event: int) -> list[tuple[int, Any]]:
        """(variable, value) of all that a thread has assigned since its event before this one."""
        found = []
        queue = self._changes.get(thread, deque())
        while queue and queue[0][0] <= self.numbers[event]:
            _, variable, value = queue.popleft()
            dtype = self.trace.variables[variable].dtype
            raw = int(value).to_bytes(8, "little")[: dtype.itemsize]
            found.append((variable, as_json(raw, dtype)))
        return found

    def call(self, event: int) -> str:
        """What kind of call of the warp it is."""
        names = {"syncwarp": "__syncwarp", "shuffle": "a shuffle", "vote": "a vote"}
        return names.get(self._kinds[event], "a call of the warp")


def _word(bits: int) -> Any:
    """A value whose type is not known: a float where its bits look like one."""
    return as_json(bits.to_bytes(8, "little")[: 4 if bits < 2**32 else 8], None)
