"""Watcher: a thread of each rank, which looks how long the rank has waited for another one.

MPI waits for ever: for a rank that hangs, that was stopped, that has ended by itself, or whose
machine is gone.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tinygraph.base.variables import seconds_of
from tinygraph.distributed.ending import end, wait_turn
from tinygraph.distributed.notes import Notes
from tinygraph.distributed.world import World

_FIRST = 10  # collectives, before which nothing is usual: what is compiled or read takes long once
_MOST, _LEAST, _TIMES = 600.0, 20.0, 20.0
_TO_ABORT = 2.0  # seconds that MPI has to end this process
_TO_ARRIVE = 2.0  # seconds that what a rank has sent may take, after it has ended


class Watcher:
    """How long a rank may be in a collective; the context that it is in meanwhile.

    Entering and leaving write a few attributes: a microsecond.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.what = ""  # the collective that the rank is in
        self.peer: int | None = None  # whom it waits for; None: all of them
        self.notes: Notes | None = None  # which ranks have ended
        self.code: Any = 0  # that the program has given to sys.exit, since the last collective
        self._patient = False  # the first rank does something for all
        self._count = 0
        self._ended = time.monotonic()
        self._longest = 0.0  # time between the ends of two collectives
        self._thread: threading.Thread | None = None
        self._timeout = _asked_timeout()

    def watch(self, what: str, peer: int | None = None) -> Watcher:
        """What the rank is about to enter, and whom it waits for; returns the context of it."""
        self._count += 1
        self.what, self.peer, self.code = what, peer, 0
        if self._thread is None:
            self._start()
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        now = time.monotonic()
        between, self._ended = now - self._ended, now
        if between > self._longest and not self._patient:
            self._longest = between
        self.what = ""

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """While one rank works for all of them: nobody knows how long that takes."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    def set_timeout(self, timeout: float | None) -> None:
        """A limit in seconds, None for the usual."""
        self._timeout = timeout

    @property
    def limit(self) -> float:
        """How many seconds the rank may wait now."""
        if self._timeout is not None:
            return self._timeout
        if self._count <= _FIRST or self._patient:
            return _MOST
        return min(_LEAST + _TIMES * self._longest, _MOST)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._look, name="tinygraph watcher", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        """Add up how long the rank has been in the same collective.

        Added up are the naps of this thread: a launch that is stopped as a whole, by Ctrl-Z or in a
        debugger, sleeps and does not wait.
        """
        seen, waited, alone, last = 0, 0.0, 0.0, time.monotonic()
        while True:
            nap = min(1.0, self.limit / 8)
            time.sleep(nap)
            now = time.monotonic()
            napped, last = min(now - last, 2 * nap), now
            if not self.what or self._count != seen:
                seen, waited, alone = self._count, 0.0, 0.0
                continue
            waited += napped
            gone = self._gone()
            alone = 0.0 if gone is None else alone + napped
            if waited > self.limit or alone > _TO_ARRIVE:
                wait_turn(self.world)
                if self.what and self._count == seen:
                    self._end(waited, gone)

    def _gone(self) -> int | None:
        """The first rank that has ended of those that this one waits for."""
        if self.notes is None or self.what == "finalize":  # where all ranks end
            return None
        self.notes.listen()
        ended = self.notes.ended
        return min(ended if self.peer is None else ended & {self.peer}, default=None)

    def _end(self, waited: float, gone: int | None) -> None:
        words = f"rank {self.world.rank} has waited {waited:.0f} s in {self.what} for another rank"
        if gone is not None:
            words = f"rank {gone} has ended, and rank {self.world.rank} waits for it in {self.what}"
        threading.Thread(target=_kill_after, args=(_TO_ABORT,), daemon=True).start()
        end(self.world, f"{words}: all ranks are ended", 1)


def _kill_after(seconds: float) -> None:
    """MPI may wait for what the program's thread holds; mpiexec ends the others then, too."""
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def _asked_timeout() -> float | None:
    return seconds_of("init", "TINYGRAPH_COLLECTIVE_TIMEOUT", None, infinite=True)
