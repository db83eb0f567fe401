"""RunLock: of all processes, one at a time trains in a run folder.

    RUN/.lock       held with flock while a training writes; says which process holds it

The system lets go of the lock when its holder ends, however it ends: a file that a killed process
has left says nothing.  One who is done removes the file, under the lock; hence one who has got a
lock looks whether the file still has its name.

A process may take the lock of a folder again: it is one for all of them, and counted.  A lock of
flock belongs to an open file, which a fork would share: then a child that lives on would hold it
for a training that is dead.  So a forked child closes its copy at once, and a program that is
started by one never has it (O_CLOEXEC).

Readers take no lock.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tinygraph.base import ArgumentError
from tinygraph.base.json_text import from_json, to_json
from tinygraph.files.sealed import writing

NAME = ".lock"
_MOST = 4096  # bytes that a lock file is read of
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF}
_held: dict[tuple[int, int], _Held] = {}  # those of this process, by device and inode of the file
_guard = threading.RLock()  # of `_held`; a fork waits for it


class RunLockWarning(UserWarning):
    """A run folder lies on a file system that has no locks."""


@dataclass(eq=False)
class _Held:
    """A lock of this process."""

    path: Path
    key: tuple[int, int]
    descriptor: int
    count: int = 0
    thread: threading.Thread | None = None  # the one that trains under it


class RunLock:
    """The lock of a run folder, as one RunFolder sees it, with which it ends at the latest.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RunLock(Path(folder)).alone():
    ...         os.listdir(folder)
    ...     os.listdir(folder)
    ['.lock']
    []
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._depth = 0
        self._mine: _Held | None = None
        self._end: Callable[[], Any] | None = None  # lets go of it, also where `self` has gone

    def __reduce__(self) -> Any:
        return RunLock, (self.path.parent,)  # a copy holds nothing

    def take(self) -> None:
        """Hold the lock from now on; nothing changes where it is held.

        Raises
        ------
        ArgumentError
            Another process holds it: the message names it.
        CheckpointError
            The folder cannot be written.
        """
        self._hold()

    def _hold(self) -> _Held:
        with writing(self.path), _guard:
            if self._mine is None or _held.get(self._mine.key) is not self._mine:
                self._mine = _found(self.path) or _taken(self.path)
                self._mine.count += 1
                self._end = weakref.finalize(self, _let_go, self._mine)
            return self._mine

    def release(self) -> None:
        """Let go of it; nothing happens where it is not held."""
        if self._end is not None:
            self._end()
        self._mine = self._end = None

    @contextmanager
    def alone(self, keep: bool = False) -> Iterator[None]:
        """Hold the lock for a block of code, which may lie in another one.

        At the end of the outermost one it is released; with `keep` only where the block fails.
        """
        self.take()
        self._depth += 1
        try:
            yield
        except BaseException:
            keep = False
            raise
        finally:
            self._depth -= 1
            if not self._depth and not keep:
                self.release()

    @contextmanager
    def briefly(self) -> Iterator[None]:
        """Hold the lock while something is written, and leave it as it was."""
        before = self._mine
        held = self._hold() is before
        try:
            yield
        finally:
            if not held:
                self.release()

    @contextmanager
    def training(self) -> Iterator[None]:
        """The same for a training: of the threads of a process one trains in a folder at a time."""
        with self.alone():
            held, me = self._hold(), threading.current_thread()
            with _guard:
                other = held.thread
                if other is not None and other is not me and other.is_alive():
                    raise _taken_by(self.path, f"this process, in the thread {other.name}")
                held.thread = me
            try:
                yield
            finally:
                if other is not me:
                    held.thread = None


def _found(path: Path) -> _Held | None:
    """The lock, where this process holds it already."""
    with suppress(OSError):
        there = os.stat(path, follow_symlinks=False)
        return _held.get((there.st_dev, there.st_ino))
    return None


def _taken(path: Path) -> _Held:
    """Take the lock; ArgumentError where another process has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):
                os.unlink(path)  # a link, or a pipe: it is none of ours
        descriptor = os.open(path, flags, 0o666)
        try:
            _lock(path, descriptor)
            opened = os.fstat(descriptor)
            if opened.st_nlink == 1 and os.path.samestat(opened, os.lstat(path)):
                _describe(descriptor)
                key = opened.st_dev, opened.st_ino
                _held[key] = _Held(path, key, descriptor)
                return _held[key]
            if opened.st_nlink > 1:  # it is somebody's file, under this name too: leave it alone
                os.unlink(path)
        except FileNotFoundError:
            pass  # its holder has removed it meanwhile
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(path: Path, descriptor: int) -> None:
    """Take the lock of an open file at once, or not at all."""
    try:
        import fcntl

        for patience in range(100, -1, -1):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pid, who, way_out = _holder(descriptor)
                if _lives(pid) or not patience:
                    raise _taken_by(path, who, way_out) from None
            time.sleep(0.02)  # a child that it forked as it ended closes its copy at once
    except (ImportError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        warnings.warn(
            f"{path.parent}: this file system has no locks ({error}): nothing keeps a second "
            "training out of this folder; see to it that there is none",
            RunLockWarning,
            stacklevel=2,
        )


def _describe(descriptor: int) -> None:
    """Write down who holds the lock; without a byte of room nobody is named, and it holds."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    me = {"pid": os.getpid(), "host": os.uname().nodename, "since": since}
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, to_json(NAME, me).encode(), 0)


def _lives(pid: int | None) -> bool:
    """Whether a process of this machine runs, as far as one can see."""
    if pid is None:
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def _holder(descriptor: int) -> tuple[int | None, str, str]:
    """Who holds the lock of a file: its number on this machine, in words, and what to do."""
    for _ in range(10):
        try:
            found = from_json(os.pread(descriptor, _MOST, 0))
            pid, host, since = int(found["pid"]), str(found["host"]), str(found["since"])
        except (ValueError, TypeError, KeyError, RecursionError):
            time.sleep(0.02)  # it has just got the lock, and not yet said so
            continue
        here = host == os.uname().nodename
        where = "" if here else f" on {host}"
        way_out = f"wait for its end; or stop it, which saves a checkpoint, by `kill {pid}`{where}"
        return pid if here and pid > 0 else None, f"process {pid} on {host}, since {since}", way_out
    return None, "a process that has not said who it is", "wait for its end"


def _taken_by(path: Path, who: str, way_out: str = "wait for its end") -> ArgumentError:
    expected = "a folder in which nobody else trains"
    return ArgumentError("run folder", str(path.parent), expected, who, way_out)


def _let_go(held: _Held) -> None:
    """One holder less; the last one removes the file."""
    with _guard:
        if _held.get(held.key) is not held:
            return  # this is a forked child, which has closed it
        held.count -= 1
        if held.count:
            return
        del _held[held.key]
        with suppress(OSError):
            there = os.stat(held.path, follow_symlinks=False)
            if (there.st_dev, there.st_ino) == held.key:  # else the folder is another one
                os.unlink(held.path)
        with suppress(OSError):
            os.close(held.descriptor)


def _close_in_child() -> None:
    """A forked child lets go of its copies; the locks stay with its parent."""
    for held in _held.values():
        with suppress(OSError):
            os.close(held.descriptor)
    _held.clear()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_in_child
    )
