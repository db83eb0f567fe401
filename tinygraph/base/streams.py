"""Standard streams that need not be there: closed, broken off, of a small alphabet.

A daemon and `2>&-` have no stderr, pythonw none at all; the reader of `| head` leaves, and a
terminal is closed while a training runs; a Latin-1 or ASCII locale cannot write every name.  What
somebody might have read is no reason to lose what is being done.

    say            a line, where it can be written
    standing       in a block of code: streams that are there, and write any character
    unbroken       in a block of code: what nobody reads any more stops nothing
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

_NAMES = ("stdin", "stdout", "stderr")
_GONE = {errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO, errno.ESHUTDOWN}  # nobody listens


def say(text: object, stream: Any) -> bool:
    """Write a line to a stream, if there is one; whether it could be written."""
    line = f"{text}\n"
    try:
        try:
            stream.write(line)
        except UnicodeEncodeError as error:
            known = error.encoding
            stream.write(line.encode(known, "backslashreplace").decode(known))
        stream.flush()
        return True
    except (OSError, ValueError, AttributeError) as error:  # gone, closed, never there
        if isinstance(error, OSError):
            abandon(stream)
        return False


def shown_on_terminal(stream: Any) -> bool:
    """Whether somebody looks at a stream; False where there is none, or it is closed."""
    with suppress(AttributeError, ValueError, OSError):
        return bool(stream.isatty())
    return False


def flush() -> None:
    """Write out what is on its way to stdout and stderr, as far as they are there."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError, OSError):
            stream.flush()


def abandon(stream: Any) -> None:
    """Let what is written to a broken stdout or stderr, and what it still holds, go nowhere."""
    with suppress(AttributeError, ValueError, OSError):
        descriptor = stream.fileno()
        if descriptor in (1, 2):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
            stream.flush()


@contextmanager
def standing() -> Iterator[None]:
    """Streams that are there, and write any character, one that they lack with backslashes.

    A closed descriptor would be given to the next file that is opened, and what is meant for
    stderr would be written into that.
    """
    with suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(descriptor, True)
        os.close(descriptor)
    found = {name: getattr(sys, name) for name in _NAMES}
    before = {**found}
    errors = {}
    for name, stream in found.items():
        if stream is None or getattr(stream, "closed", False):
            before[name] = None
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            with suppress(ValueError, OSError):
                errors[name] = stream.errors
                stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for name, stream in before.items():
            if stream is None:
                getattr(sys, name).close()
                setattr(sys, name, found[name])
        for name, how in errors.items():
            with suppress(ValueError, OSError):
                before[name].reconfigure(errors=how)


class _Unbroken:
    """A stream that writes as long as somebody reads."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._lasting():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._lasting():
            self._stream.flush()

    @contextmanager
    def _lasting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            abandon(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def unbroken() -> Iterator[None]:
    """Go on where the reader of stdout leaves."""
    with redirect_stdout(_Unbroken(sys.stdout)):
        yield
