"""Files that are whole or not there, also after a crash or a loss of power.

    temporary file beside the target -> flush, fsync -> rename over the target -> fsync of folder

After a crash at any of these points the target holds the old bytes or the new, never a mixture.

    typed by the user       a link is followed, to the file that it leads to: `followed`
    a name that we make     in a run's folder, or that of a page: a link there is replaced, never
                            followed; the folder may come from a stranger

A file keeps its mode and its owner.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from tinygraph.base.errors import CheckpointError


class OwnPath(type(Path())):  # type: ignore[misc]
    """A path of ours, such as a run's folder, and what is joined to it: no link is followed.

    >>> OwnPath("run") / "graph.svg" == Path("run/graph.svg")
    True
    >>> type(OwnPath("run") / "graph.svg").__name__
    'OwnPath'
    """


def followed(path: Path) -> Path:
    """Where a path that the user has typed leads; one of ours stays as it is."""
    return path if isinstance(path, OwnPath) else Path(os.path.realpath(path))


def replace_file(path: Path, data: bytes) -> Path:
    """Replace a file in one step; a reader, or a crash, finds the old bytes or the new ones.

    A link at that place is replaced itself.  OSError where something else than a file is there.
    """
    before = _there(path)
    # Nobody knows this name beforehand, and nobody can have put anything there.
    temporary = path.with_name(f".{path.name[:30]}.{os.getpid()}-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777
    descriptor = os.open(temporary, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                _keep(file.fileno(), before, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)
    return path


def _there(path: Path) -> os.stat_result | None:
    """The file that is to be replaced; None where there is none, or a link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
        raise OSError(errno.EINVAL, "Not a file, but a device or a pipe", str(path))
    return found if stat.S_ISREG(found.st_mode) else None


def _keep(descriptor: int, before: os.stat_result, mode: int) -> None:
    """Give a new file the owner of the old one, if that is allowed, and its mode."""
    if os.name == "nt":
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, mode)  # whatever the umask is


def real_folder(folder: Path) -> Path:
    """A folder within one of ours, made where it is missing; a link is no such folder."""
    if folder.is_symlink():
        words = f"A link to {os.readlink(folder)}, where a folder of the run has to be"
        raise NotADirectoryError(errno.ENOTDIR, words, str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def open_to_append(path: Path) -> TextIO:
    """A file of ours to add lines to; OSError where a link is there."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.fdopen(os.open(path, flags, 0o666), "a", encoding="utf-8")
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "A link, where a file of the run has to be", path) from None
        raise


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to read; OSError for a device, and for a pipe, at which one could wait for ever."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "A name with NUL", str(path))
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames last; Windows has no such call, and does not need it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> Path:
    """Replace a file in one step, its folder made where there is none."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return replace_file(path, data)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the file system into a CheckpointError with the file and the reason."""
    try:
        yield
    except OSError as error:
        own = isinstance(path, OwnPath)
        op = "run folder" if own else "save"
        raise CheckpointError(
            op, str(path), "a place that can be written", reason(error), way_out(error, own)
        ) from None


def way_out(error: OSError, own: bool = False) -> str:
    """What to do where a file cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space on the disk"
    if error.errno == errno.ENOTDIR and "A link to" in str(error.strerror):
        return "put a folder in the place of the link"
    return "choose another folder for the run" if own else "choose another place"


def reason(error: OSError) -> str:
    """What the operating system says, without the number and the path."""
    return error.strerror or str(error)
