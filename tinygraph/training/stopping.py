"""When a training ends before its last epoch: a signal, or a duration that is over.

    first signal    a note is left, and the training stops after the batch under way
    second one      does what it would have done without us: Ctrl-C interrupts at once
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tinygraph.errors import ArgumentError, explain

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_HINT = b"stopping after this batch; Ctrl-C again stops at once\n"


def parse_duration(text: str) -> float:
    """A duration in seconds, from a number with a unit: s, m or h.

    Parameters
    ----------
    text : str
        Such as "90s", "10m" or "1.5h".  The unit is needed: "10" could be either.

    Returns
    -------
    float
        Seconds, above 0.

    Raises
    ------
    ArgumentError
        The text is no duration, or it is not above 0.

    Examples
    --------
    >>> parse_duration("10m"), parse_duration("1.5h"), parse_duration("30s")
    (600.0, 5400.0, 30.0)
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)([smh])", text.strip())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds < math.inf:
        raise ArgumentError(
            explain("duration", "text", "a number above 0 with a unit, such as 90s, 10m or 1.5h",
                    repr(text))
        )  # fmt: skip
    return seconds


class Stopped(KeyboardInterrupt):
    """A training was stopped by a signal, and its state was saved.

    Attributes
    ----------
    signal : int
        The signal's number; the exit code of a program that was stopped is 128 plus this.
    path : Path
        The checkpoint.
    """

    def __init__(self, message: str, number: int, path: Path) -> None:
        super().__init__(message)
        self.signal = number
        self.path = path


class StopSignal:
    """While it is entered, the first SIGINT (Ctrl-C) or SIGTERM leaves its number in `received`.

    Signals can only be caught in the main thread; in another one nothing is changed.  A signal
    that is ignored, as under `nohup`, stays ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}
        self._at_once = False

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if before not in (None, signal.SIG_IGN):  # None: set by a library in C
                    self._before[number] = before
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        self._give_back()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Where nothing is learnt, the first signal raises KeyboardInterrupt at once."""
        self._at_once = True
        try:
            if self.received is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._at_once = False

    def _note(self, number: int, frame: object) -> None:
        self._give_back()
        self.received = number
        if self._at_once:
            raise KeyboardInterrupt
        if sys.stderr is not None and sys.stderr.isatty():
            with suppress(OSError):
                os.write(2, _HINT)  # print could be in the middle of a line of its own

    def _give_back(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())


class Clock:
    """Laps on the clock that never goes back."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """Seconds since the last lap."""
        last, self._last = self._last, time.monotonic()
        return self._last - last
