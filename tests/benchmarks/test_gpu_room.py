"""The room in which sections of `make gpu` measure: turns, clocks, medians and ratios."""

import time
import types

import pytest

from benchmarks.gpu.host_time import BURST, ThreadClock
from benchmarks.gpu.room import EventClock, Room
from benchmarks.timing import Ratio, Times, Timing


class CountingClock:
    """A clock that writes down who was called, and gives times made up beforehand."""

    def __init__(self):
        self.calls = []

    def timing(self, run, repeats):
        run()
        self.calls.append((run(), repeats))
        return Timing(0.5, 0.5)


def test_runs_take_turns_after_warming_up():
    clock = CountingClock()
    times = Room("cpu", clock, quick=True).in_turns({"a": lambda: "a", "b": lambda: "b"})
    assert [name for name, _ in clock.calls] == list("aabb" + "ab" * 5)
    assert set(clock.calls) == {("a", 1), ("b", 1)}
    assert len(times["a"].rounds) == 5 and times["b"].median == 0.5


def test_a_short_run_is_repeated():
    class Fast(CountingClock):
        def timing(self, run, repeats):
            super().timing(run, repeats)
            return Timing(1e-3, 1e-3)

    clock = Fast()
    Room("cpu", clock).in_turns({"a": lambda: "a"})
    assert clock.calls[-1] == ("a", 20)


def test_median_range_and_mark():
    seen = Times((Timing(1e-3, 1.1e-3), Timing(3e-3, 3e-3), Timing(2e-3, 2e-3)))
    assert seen.text() == "2 (1 to 3)" and not seen.marked
    unseen = Times((Timing(1e-4, 5e-3),) * 3)
    assert unseen.marked and unseen.text() == "0.1* (0.1 to 0.1)"


def test_a_ratio_is_taken_round_by_round():
    own = Times(tuple(Timing(t, t) for t in (1.0, 2.0, 4.0)))
    other = Times(tuple(Timing(t, t) for t in (3.0, 4.0, 4.0)))
    assert Ratio.of(own, other).values == (3.0, 2.0, 1.0)
    assert Ratio.of(own, other).text() == "2.00 (1.00 to 3.00)"


def test_events_are_recorded_around_the_repeats():
    said = []

    class Event:
        def record(self, stream):
            said.append(stream)

    cuda = types.SimpleNamespace(
        Event=Event,
        Stream=types.SimpleNamespace(null="null"),
        Device=lambda: types.SimpleNamespace(synchronize=lambda: said.append("wait")),
        get_elapsed_time=lambda first, last: 12.0,
    )
    clock = EventClock(types.SimpleNamespace(cuda=cuda))
    timing = clock.timing(lambda: said.append("run"), 3)
    assert said == ["wait", "null", "run", "run", "run", "null", "wait"]
    assert timing.events == pytest.approx(0.004) and 0 < timing.wall < 0.004


def test_a_device_catches_up_before_each_burst_of_the_host():
    """And its time is none of the host's: here waiting takes time of the processor."""
    said = []

    def catch_up():
        said.append("wait")
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    timing = ThreadClock(catch_up).timing(lambda: said.append("run"), BURST + 2)
    assert said == ["wait", *["run"] * BURST, "wait", "run", "run"]
    assert timing.events == timing.wall < 0.01 / (BURST + 2)
