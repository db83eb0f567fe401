"""A launch ends as one: when a rank fails, one of them says why, once, and all are ended.

MPI has no word for that.  A rank whose program fails finalises MPI, which waits for the others;
they wait for it in a collective: for ever.

    an exception that nobody catches, in the program or in a thread that it is not done without;
    sys.exit or exit with a code other than 0; os._exit         hooks that `end_together` sets
    a rank that waits too long for another one, or for one
    that has ended, by an uncaught `raise SystemExit`, say      watch.py
    a rank that is killed, and with it all, by mpiexec          LastWord

The rank that has failed speaks.  Where several have, it is the first of them: the others wait for
their turn, and are ended meanwhile.
"""

from __future__ import annotations

import atexit
import builtins
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import Any

from tinygraph.base.streams import flush
from tinygraph.distributed.world import World

_OTHERS, _EACH, _AT_MOST = 1.0, 0.5, 5.0  # seconds, by rank, for the ranks before to speak
_INNOCENT = 10.0  # for a rank that is known to have failed


def wait_turn(world: World) -> None:
    """Let the rank speak that is to speak of a failure; it ends this one meanwhile."""
    if world.failed not in (None, world.rank):
        time.sleep(_INNOCENT)
    elif world.rank:
        time.sleep(min(_OTHERS + _EACH * world.rank, _AT_MOST))


def end(world: World, message: str, code: int) -> None:
    """Say why a launch ends and how to go on, and end it."""
    flush()
    hint = f"{world.resume_hint}\n" if world.resume_hint else ""
    with suppress(OSError):  # nobody listens
        os.write(2, f"{message}\n{hint}".encode("utf-8", "backslashreplace"))  # in one piece
    world.abort(code)


def end_together(world: World, watcher: Any) -> None:
    """Let the failure of this process end all ranks, from now on."""
    process = os.getpid()
    report, report_of_thread = sys.excepthook, threading.excepthook
    leave, leave_at_once = sys.exit, os._exit

    def fail(code: int, words: str = "has failed") -> None:
        if os.getpid() == process:  # else a copy of it, which is no rank
            end(world, f"rank {world.rank} {words}: all ranks are ended", code)

    def excepthook(kind: Any, error: Any, traceback: Any) -> None:
        wait_turn(world)
        report(kind, error, traceback)
        fail(128 + signal.SIGINT if issubclass(kind, KeyboardInterrupt) else 1)

    def excepthook_of_thread(failed: threading.ExceptHookArgs) -> None:
        report_of_thread(failed)
        if failed.thread is None or not failed.thread.daemon:
            fail(1)

    def exit_with(code: Any = None, /) -> Any:
        watcher.code = code
        leave(code)

    def exit_at_once(status: int) -> Any:  # which mpiexec answers without a word, and by its code
        if os.getpid() == process and isinstance(status, int) and watcher.notes.usable:
            fail(status & 255 or 1, f"has ended by os._exit({status})")
        leave_at_once(status)

    def at_exit() -> None:
        code = watcher.code
        if code:
            wait_turn(world)
            fail(code if isinstance(code, int) else 1)
        elif os.getpid() == process:
            watcher.notes.tell()

    sys.excepthook, threading.excepthook = excepthook, excepthook_of_thread
    sys.exit, os._exit = exit_with, exit_at_once
    for name in {"exit", "quit"} & vars(builtins).keys():  # Python's own for the prompt
        setattr(builtins, name, exit_with)
    atexit.register(at_exit)


class LastWord:
    """Says how to go on when no rank can: a shell that waits for the end of a pipe.

    mpiexec ends the others at once where a rank is killed, without a signal that could be caught.
    The pipe has a name and ends with the first rank.  A rank of the same machine that can speak
    itself writes into it, so that nothing is said twice.
    """

    _SCRIPT = 'read -r word || printf "%s\\n" "$1" >&2; rm -rf "$2"'

    def __init__(self, world: World, words: str) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._end = -1
        folder = tempfile.mkdtemp(prefix="tinygraph-") if world.rank == 0 else ""
        self._pipe = os.path.join(world.broadcast_object(folder), "pipe")
        if world.rank == 0 and os.path.exists("/bin/sh"):
            os.mkfifo(self._pipe)
            # Both ends are open before the shell begins: what comes too early waits for it.
            read = os.open(self._pipe, os.O_RDONLY | os.O_NONBLOCK)
            self._end = os.open(self._pipe, os.O_WRONLY)  # open as long as this process lives
            os.set_blocking(read, True)
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", self._SCRIPT, "sh", words, folder],
                stdin=read,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # not killed with the rank
            )
            os.close(read)

    def withdraw(self) -> None:
        """Nothing is to be said any more."""
        with suppress(OSError):  # it is another machine's, or done
            if self._shell is None:
                self._end = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
            os.write(self._end, b"nothing\n")
            os.close(self._end)
        if self._shell is not None:
            self._shell.wait()
