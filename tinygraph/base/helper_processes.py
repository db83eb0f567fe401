"""Helper processes, and signals that reach all processes of a terminal or of a job.

Ctrl-C in a terminal, a terminal that is closed, `timeout`, a cluster that cancels a job: each sends
its signal to the program and to whatever it has started.  What it means is decided by the program
alone, which may want to finish its step and save; its helpers end when it lets go of them.

A helper has none of these signals from its first moment on: it is started with them blocked.  Once
it has arranged itself it lets them pass again, for programs that it starts in turn.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker

# What ends a program that does not handle it, and can be handled.
ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def out_of_reach(kinds: Sequence[signal.Signals] = ENDING) -> Iterator[None]:
    """Processes that are started here inherit that these signals do not reach them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The first start of a process would start it, and let through SIGINT and SIGTERM.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, kinds)
    try:
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, kinds)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def left_to_the_program(kinds: Sequence[signal.Signals] = ENDING) -> None:
    """In a helper: nothing happens when these signals come.

    A handler that does nothing, not SIG_IGN: that would be inherited by programs that it starts.
    """
    for kind in kinds:
        if signal.getsignal(kind) is not signal.SIG_IGN:
            signal.signal(kind, _nothing)
            if hasattr(signal, "siginterrupt"):
                signal.siginterrupt(kind, False)  # calls of the system go on
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, kinds)


def _nothing(*_: object) -> None:
    pass
