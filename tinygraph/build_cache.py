"""One cache on disk for everything that a compiler makes, shared by all processes of a user.

    KEY.so        a compiled file; KEY is the SHA-256 of all that it depends on
    KEY.so.lock   held while it is being built

A file is built under another name and renamed when it is whole: whoever finds KEY.so may use it.
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
    Path of a file that is whole.

    >>> path = compiled(["example", "1"], ".txt", lambda path: path.write_text("made") and None)
    >>> path.read_text()
    'made'
    """
    path = folder() / f"{key(parts)}{suffix}"
    if path.exists():
        return path
    with _lock(path.with_name(f"{path.name}.lock")):
        if not path.exists():  # nobody has built it while this process waited for the lock
            _build(path, suffix, build)
    return path


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
    be written, a private folder that is removed when the process ends.
    """
    named = os.environ.get("TINYGRAPH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(named).expanduser() if named else Path(base) / "tinygraph"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _private_folder(named)
    return path if os.access(path, os.W_OK | os.X_OK) else _private_folder(named)


@cache
def _private_folder(named: str | None) -> Path:
    """A temporary folder of this process; a warning if the user has named another."""
    if named:
        warnings.warn(
            f"TINYGRAPH_CACHE: {named!r} cannot be written; kernels are compiled anew by each "
            "process",
            RuntimeWarning,
            stacklevel=2,
        )
    path = tempfile.mkdtemp(prefix="tinygraph-cache-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child must not take its parent's folder away
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return Path(path)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, against other processes and other threads.

    The kernel lets go of it when its holder ends, however it ends.  The file is removed afterwards:
    one who still waits for the removed file, and one who makes a new one, both look first whether
    the cached file is there.
    """
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
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
