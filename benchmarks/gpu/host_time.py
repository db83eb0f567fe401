"""Microseconds of Python for each op and step on this machine, with its driver.

The calls are those of benchmarks/host_time.py, which times them without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room, Run
from benchmarks.host_time import calls, thread_seconds, warm_up
from benchmarks.report import Table
from benchmarks.timing import Timing

TITLE = "Time of the host"
BURST = 50  # calls; a GPU that is behind by many more launches lets the host wait


class ThreadClock:
    """The time of this thread on its processor.

    Before each burst of calls the device catches up: what it does is none of the host's time.
    """

    def __init__(self, catch_up: Callable[[], Any]) -> None:
        self._catch_up = catch_up

    def timing(self, run: Run, repeats: int) -> Timing:
        seconds = 0.0
        for done in range(0, repeats, BURST):
            self._catch_up()
            burst = min(BURST, repeats - done)
            seconds += thread_seconds(run, burst) * burst
        return Timing(seconds / repeats, seconds / repeats)


def run(room: Room) -> Result:
    result = Result(TITLE)
    cupy: Any = None
    if room.device == "cuda":
        import cupy
    else:
        result.left_out.append("a captured step: a CUDA graph needs CuPy")
    if room.rehearse:
        result.left_out.append("CuPy's own launch: its kernel runs on a GPU alone")
    shown = Table(["call", "us"])
    words = "Ops: 64 x 64, float32, without gradients. Seed step: batch 10, 256 filters."
    result.blocks += [words, shown]
    clock = ThreadClock(cupy.cuda.Device().synchronize if cupy else lambda: None)
    timed = replace(room, clock=clock)
    for name, call in calls(None if room.rehearse else cupy, room.device).items():
        warm_up(call)
        shown.rows.append([name, timed.in_turns({name: call})[name].text(1e6)])
        room.tell(result)
    return result
