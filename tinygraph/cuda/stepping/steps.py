"""The steps of one block of a trace: what the lanes of a warp do together, and what it costs.

Trace, thread by thread  --lockstep-->  steps of warps  --requests-->  sectors and turns
                                             |
                         memory as it is after each of them, one element a cell
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from tinygraph.cuda.emulator.lockstep import WARP, Lanes, WarpStep
from tinygraph.cuda.emulator.requests import sectors, turns
from tinygraph.cuda.stepping.cells import Cells
from tinygraph.cuda.stepping.events import ACCESSES, Events

Step = dict[str, Any]  # as data.py describes it


def mask(lanes: Iterable[int]) -> int:
    return sum(1 << lane for lane in lanes)


class BlockSteps:
    """The steps of one block.

    Parameters
    ----------
    events : Events
        Of the block.
    memory : list of Cells
        One for each array: what it holds when the block begins, and afterwards when it ends.
    threads : int
        Of the block.
    complete : bool
        Whether all blocks before it have been recorded, so that memory is known.

    Attributes
    ----------
    steps : list of dict
    """

    def __init__(
        self, events: Events, memory: list[Cells], threads: int, complete: bool = True
    ) -> None:
        self.events, self.memory, self.threads = events, memory, threads
        self._complete = complete
        self.steps: list[Step] = []
        self._step_of: dict[int, int] = {}
        self._last = {thread: event for event, thread in enumerate(events.threads)}
        self._left = 0
        self._news: dict[int, dict[int, dict[int, Any]]] = {}  # warp -> variable -> lane -> value
        lanes = Lanes(events.threads, events.epochs, events.places, events.meetings)
        groups = list(lanes.steps())
        epoch = groups[0].epoch if groups else 0
        for group, after in zip_longest(groups, groups[1:]):
            if group.epoch > epoch:
                self._open_gate()
            epoch = group.epoch
            self._assign(group)
            plain = self._is_plain(group, after)
            if not plain:
                self.steps.append(self._step(group))
            self._part(group, plain)

    def step_at(self, number: int) -> int | None:
        """The step that an event of the trace is in, or the last one before; None for none."""
        known = [event for event in self._step_of if event <= number]
        return min(self._step_of[max(known)], len(self.steps) - 1) if known else None

    def _is_plain(self, group: WarpStep, after: WarpStep | None) -> bool:
        """Whether it is a piece of code without an access that shows nothing new.

        That is: the same line with the same lanes as in the step before, or in the one after; or
        the way out of the kernel.
        """
        if self.events.kinds[group.events[0]] != "code" or not self.steps:
            return False
        threads = [WARP * group.warp + lane for lane in group.lanes]
        ends = zip(threads, group.events, strict=True)
        if all(t in self.events.ended and self._last[t] == event for t, event in ends):
            return True
        before = self.steps[-1]
        here = group.warp, mask(group.lanes), *self.events.line(group.events[0])
        if here == (before.get("warp"), before.get("lanes"), before["file"], before["line"]):
            return True
        if after is None or after.epoch != group.epoch:
            return False
        return here == (after.warp, mask(after.lanes), *self.events.line(after.events[0]))

    def _step(self, group: WarpStep) -> Step:
        first = group.events[0]
        file, line = self.events.line(first)
        news = self._news.pop(group.warp, {})
        step: Step = {
            "kind": self.events.kinds[first],
            "warp": group.warp,
            "epoch": group.epoch,
            "file": file,
            "line": line,
            "lanes": mask(group.lanes),
            "set": [
                (variable, mask(values), [values[lane] for lane in sorted(values)])
                for variable, values in news.items()
            ],
        }
        if step["kind"] in ACCESSES:
            self._access(step, group)
        elif step["kind"] == "stop":
            step |= {"array": self.events.arrays[first], "size": self.events.sizes[first]}
            step["offsets"] = [self.events.offsets[event] for event in group.events]
        elif step["kind"] in ("meet", "exchange"):
            step["call"] = self.events.call(first)
            step["rows"] = self.events.exchanged(group.events)
        return step

    # ---- memory ---------------------------------------------------------------------------------

    def _access(self, step: Step, group: WarpStep) -> None:
        """What a request touches, costs, gets and leaves."""
        events, first = self.events, group.events[0]
        cells, size = self.memory[events.arrays[first]], events.sizes[first]
        offsets = [events.offsets[event] for event in group.events]
        step |= {"array": events.arrays[first], "size": size, "offsets": offsets}
        inside = [cells.base + o for o in offsets if 0 <= o <= cells.size - size]
        if inside:
            step["cost"] = (turns if cells.shared else sectors)(inside, size)
        data = [events.data(event) for event in group.events]
        step["values"] = [cells.decoded(bytes_) for bytes_ in data]
        if step["kind"] == "read":
            odd = [k for k, o in enumerate(offsets) if not cells.holds(o, data[k])]
            if self._complete or cells.shared:
                if odd:
                    step["odd"] = odd
                return
        changed: dict[int, Any] = {}  # the last one in the run stays
        for k in range(len(offsets)):
            cells.store(offsets[k], data[k], events.numbers[group.events[k]])
            cells.forget(offsets[k] + len(data[k]), size - len(data[k]))
            changed |= {index: cells.value(index) for index in cells.touched(offsets[k], size)}
        step["stored"] = list(changed.items())

    def _assign(self, group: WarpStep) -> None:
        """Note what variables of the lanes hold now; the next step of the warp shows it."""
        for lane, event in zip(group.lanes, group.events, strict=True):
            for variable, value in self.events.news(self.events.threads[event], event):
                values = self._news.setdefault(group.warp, {}).setdefault(variable, {})
                values[lane] = value

    # ---- who is where ---------------------------------------------------------------------------

    def _part(self, group: WarpStep, plain: bool) -> None:
        """Note which events a step stands for, and which lanes do nothing after it."""
        at = len(self.steps) - 1
        file, line = self.events.line(group.events[0])
        # The piece of code in front of an access belongs to that, which comes next.
        ahead = plain and (file, line) != (self.steps[at]["file"], self.steps[at]["line"])
        for lane, event in zip(group.lanes, group.events, strict=True):
            self._step_of[self.events.numbers[event]] = at + ahead
            thread = WARP * group.warp + lane
            if self._last[thread] == event:
                end = "left" if thread in self.events.ended else "lost"
                self.steps[at][end] = self.steps[at].get(end, 0) | 1 << lane
                self._left += end == "left"

    def _open_gate(self) -> None:
        """All threads that are left have come to the barrier."""
        before = next(step for step in reversed(self.steps) if step["kind"] == "barrier")
        place = {name: before[name] for name in ("epoch", "file", "line")}
        self.steps.append({"kind": "open", **place, "come": self.threads - self._left})
