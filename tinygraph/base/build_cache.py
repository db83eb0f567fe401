"""One cache on disk for everything that a compiler makes, shared by all processes of a user.

    KEY.so          a compiled file; KEY is the SHA-256 of all that it depends on
    KEY.so.sha256   the SHA-256 of the file itself: one that was damaged since is built again
    KEY.so.lock     held while it is being built

A file is built under another name and renamed when it is whole: whoever finds KEY.so may use it.
What lies here runs as the user: a place where others may write is not used, see trust.py.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from tinygraph.base.trust import close_to_others, make_private, open_to_others, why_not_ours


def compiled(parts: Iterable[str], suffix: str, build: Callable[[Path], None]) -> Path:
    """The cached file for `parts`; built by the first process that asks, while others wait for it.

    Parameters
    ----------
    parts : strings
        All that the file depends on: source digest, compiler and its version, flags, architecture.
    suffix : str
        The end of the file's name: ".so", ".cubin".
    build : function of a Path
        Writes the file there.  What it raises comes out of `compiled`, and nothing is kept.

    Returns
    -------
    Path of a file that is whole.  One that was damaged is built again, with a warning; in the place
    of one that another user has written, with a warning, there is one in a private folder.

    >>> path = compiled(["example", "1"], ".txt", lambda path: path.write_text("made") and None)
    >>> path.read_text()
    'made'
    """
    path = folder() / f"{key(parts)}{suffix}"
    places = path, _sum(path)
    reason = next(filter(None, map(why_not_ours, places)), "")
    if reason or any(place.is_dir() for place in places):
        reason = reason or "is a folder, or its sum is one"
        path = private_folder(f"{path} is not loaded: it {reason}") / path.name
    if _is_whole(path):
        return path
    with locked(path):
        if not _is_whole(path):  # nobody has built it while this process waited for the lock
            if path.exists() and _sum(path).exists():  # else it is of an earlier version
                warn(f"{path} was damaged, and is built again")
            _build(path, suffix, build)
    return path


def discard(path: Path, why: object) -> None:
    """Take away what `compiled` gave and nobody can load, with a warning: it is to be built again.

    Once: what cannot be loaded though it was just built is an error.
    """
    warn(f"{path} cannot be loaded ({why}), and is built again")
    with suppress(OSError):
        path.unlink()


def key(parts: Iterable[str]) -> str:
    """SHA-256 of the parts; each is preceded by its length, so that ["ab"] and ["a", "b"] differ.

    >>> key(["ab"]) == key(["a", "b"])
    False
    """
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def folder() -> Path:
    """The folder of the cache, made where it is missing.

    It is $TINYGRAPH_CACHE, or $XDG_CACHE_HOME/tinygraph, or ~/.cache/tinygraph.  Where that cannot
    be written, or others can write there, a private folder that is removed when the process ends.
    """
    named = os.environ.get("TINYGRAPH_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME")
    inner = "" if named else "tinygraph" if shared else ".cache/tinygraph"
    return usable(named or shared or "~", inner, "TINYGRAPH_CACHE", bool(named))


def usable(place: str, inner: str, variable: str, named: bool) -> Path:
    """A folder in a place of the user's, made where it is missing; or a private one.

    `named`: whether the place is what the user has given to the environment variable.
    """
    cannot = f"{variable}: {place!r} cannot be written" if named else ""
    try:
        home = Path(place).expanduser().resolve()
        path = home / inner
        reason = open_to_others(path, home)  # before anything is made there
        if not reason:
            make_private(path)
            reason = open_to_others(path, home)
    except (OSError, RuntimeError):  # a RuntimeError: no $HOME and no such user; links in a circle
        return private_folder(cannot)
    if reason:
        words = f"{path} is no place for compiled code, for {reason}"
        return private_folder(f"{words}. Way out: a folder of your own in {variable}")
    if not os.access(path, os.W_OK | os.X_OK):
        return private_folder(cannot)
    return path


@cache
def private_folder(why: str) -> Path:
    """A temporary folder of this process, with a warning that says why, if that is not ""."""
    path = _temporary()
    if why:
        warn(f"{why}. Code is compiled anew by each process, into {path}")
    return path


@cache
def _temporary() -> Path:
    path = tempfile.mkdtemp(prefix="tinygraph-cache-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child must not take its parent's folder away
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return Path(path)


def warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def sum_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _is_whole(path: Path) -> bool:
    """Whether it is there, as it was built."""
    try:
        return _sum(path).read_text(encoding="ascii") == sum_of(path)
    except (OSError, ValueError):
        return False


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the lock file of a file or folder, against other processes and other threads.

    The kernel lets go of it when its holder ends, however it ends.  The file is removed afterwards:
    one who still waits for the removed file, and one who makes a new one, both look first whether
    the cached file is there.
    """
    path = target.with_name(f"{target.name}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        with suppress(OSError):
            path.unlink()
    finally:
        os.close(descriptor)


def _build(path: Path, suffix: str, build: Callable[[Path], None]) -> None:
    """Build under a name that nobody looks for, then rename."""
    for left_over in path.parent.glob(f".{path.name}.*"):  # of a builder that was killed
        with suppress(OSError):
            left_over.unlink()
    # The random part: a compiler that outlives its killed parent may still write to the old name.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{suffix}")
    try:
        build(temporary)
        if temporary.exists():  # else the rename says so
            _sum(path).write_text(sum_of(temporary), encoding="ascii")
            for made in (temporary, _sum(path)):
                close_to_others(made)
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
