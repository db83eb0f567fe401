"""When a training ends before its last epoch: a signal, or a duration that is over."""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections.abc import Sized
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, number, whole
from tinygraph.base.helper_processes import ENDING
from tinygraph.distributed import leads, world

_TOGETHER = 0.05  # seconds between two signals that are sent as one
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """A duration in seconds, from a number with a unit: s, m, h or d.

    Raises
    ------
    ArgumentError
        The text is no duration, or it is not above 0.

    Examples
    --------
    >>> parse_duration("10m"), parse_duration("1.5h"), parse_duration("30")
    (600.0, 5400.0, 30.0)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([smhd]?)\s*", text)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds < math.inf:
        raise ArgumentError(
            "duration", "text", "a number above 0 with a unit, such as 90s, 10m or 1.5h", repr(text)
        )
    return seconds


def require_training(loader: Sized, epochs: int | None, duration: float | None) -> None:
    """ArgumentError for a training without batches, without an end, or with one that cannot be."""
    if epochs is None and duration is None:
        raise ArgumentError("fit", "epochs", "a number, or a duration", "neither")
    if epochs is not None:
        whole("fit", "epochs", epochs)
    if duration is not None:
        number("fit", "duration", duration, above=0)
    if not len(loader):
        way_out = "give more samples, or a smaller batch size where drop_last is set"
        raise ArgumentError("fit", "train_loader", "at least one batch", "none", way_out)


class Clock:
    """Seconds of training, from those of earlier parts on, and whether a duration is over."""

    def __init__(self, before: float, duration: float | None) -> None:
        self._start = time.monotonic() - before
        self._duration = duration

    def now(self) -> float:
        return time.monotonic() - self._start

    def over(self) -> bool:
        return self._duration is not None and self.now() >= self._duration


class Asked(NamedTuple):
    """What is to be done between two batches."""

    signal: int  # the number of one that asks to stop; 0 for none
    over: bool  # the time is over
    save: bool
    back_up: bool

    @classmethod
    def together(cls, signal: int, over: bool, save: bool, back_up: bool) -> Asked:
        """One answer for all ranks: a signal may come to any of them, the first has the clock."""
        ranks = world()
        if ranks.size == 1:
            return cls(signal, over, save, back_up)
        own = [signal, over, save, back_up] if leads() else [signal, 0, 0, 0]
        found = ranks.all_reduce(np.array(own, np.int64), "max")
        return cls(int(found[0]), *map(bool, found[1:]))


class Stopped(KeyboardInterrupt):
    """A training was stopped by a signal, and can be resumed.  `signal` is the signal's number."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.signal = number


class StopSignal:
    """While it is entered, SIGINT (Ctrl-C), SIGTERM and SIGHUP only leave a note in `received`.

    The training looks at it after each batch.  A second SIGINT interrupts at once; one that comes
    with the first is the same one: `timeout` sends it to its child and to the group.  What was
    ignored stays so, as SIGINT in the background of a script and SIGHUP under nohup.  Signals can
    only be caught in the main thread; in another one nothing is changed.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._since = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for kind in ENDING:
                if signal.getsignal(kind) not in (signal.SIG_IGN, None):  # None: not Python's own
                    self._before[kind] = signal.signal(kind, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)
        self._before.clear()

    def _note(self, kind: int, frame: object) -> None:
        if self.received is None:
            self.received, self._since = kind, time.monotonic()
        elif kind == signal.SIGINT and time.monotonic() - self._since > _TOGETHER:
            raise KeyboardInterrupt
