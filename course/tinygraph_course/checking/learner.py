"""The learner's process, seen from the checker: requests go in, answers come out, it may die.

Processes are forks of a warm one, which has loaded numpy and the framework: the fork server of
Python's multiprocessing.  The first check starts it, the next ones take milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tinygraph_course.checking import wire
from tinygraph_course.checking.child import Limits, serve

DEFAULT = Limits()
_START = 60.0  # seconds that the first process may take, on a machine with other work too


class Died(Exception):
    """The process ended, or did not answer in time."""


def started(target: Callable[..., None], arguments: tuple[Any, ...], daemon: bool) -> Any:
    """A process that is a fork of the warm one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tinygraph_course.checking.child", "tinygraph_course.checking.warm"]
    )
    process = context.Process(target=target, args=arguments, daemon=daemon)
    # Ctrl-C is for this process: the server, which the first process starts, inherits the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


class Learner:
    """A process with one file; to be used in a `with`.

    Parameters
    ----------
    path : Path
        The file.
    limits : Limits
    forbidden : sequence of str
        Names of the framework that the exercise asks for.

    Attributes
    ----------
    answered : int
        How many requests it has answered.
    """

    def __init__(self, path: Path, limits: Limits = DEFAULT, forbidden: Sequence[str] = ()) -> None:
        self.limits, self.text = limits, path.read_text(encoding="utf-8")
        self.room = TemporaryDirectory()
        self.printed = Path(self.room.name) / "printed"
        self.connection, its = multiprocessing.Pipe()
        arguments = its, path, self.printed, limits, list(forbidden)
        self.process = started(serve, arguments, daemon=True)
        its.close()
        self.answered = 0

    def __enter__(self) -> Learner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        self.connection.close()
        self.room.cleanup()

    def ask(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """The answers to some requests, in order: {"value": ...}, {"odd": type} or {"error": ...}.

        Raises
        ------
        Died
        """
        patience = sum(map(self.limits.of, requests)) + _START  # he gives up before we do
        try:
            wire.send(self.connection, list(requests))
            if not self.connection.poll(patience):
                raise Died(f"no answer after {patience:.0f} seconds")
            replies = wire.receive(self.connection)
        except (EOFError, OSError):
            raise Died("your program ended before it answered") from None
        except wire.Garbled:
            raise Died("your program sent something that is no answer") from None
        good = isinstance(replies, list) and len(replies) == len(requests)
        if not good or not all(isinstance(r, dict) and len(r) == 1 for r in replies):
            raise Died("your program sent something that is no answer")
        self.answered += len(replies)
        return replies

    def output(self) -> str:
        """What the code has printed."""
        try:
            return self.printed.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def kill(self) -> None:
        """End the process and what it has started."""
        if self.process.pid is not None and self.process.is_alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join(5)
