"""Members of .zip and .tar.gz files, read into memory one by one.

Nothing is ever written to disk, so that no name in an archive can reach another folder; a zip file
with such a name is refused all the same, for it was not made in good faith.  Sizes are capped
before anything is decompressed, or while it is.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tinygraph.base import DatasetError
from tinygraph.data.files import fault

_MAX_DESCRIPTION = 1 << 16  # a long name, or the records of a pax header


def zip_members(
    op: str, path: Path, wanted: Callable[[str], bool], max_member: int, max_total: int
) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the wanted members of a zip file, sorted by name."""
    try:
        with zipfile.ZipFile(path) as archive:
            chosen = _check_directory(op, path, archive, wanted, max_member, max_total)
            for name in sorted(chosen):
                yield name, archive.read(chosen[name])  # never more than the declared size
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ) as error:
        if isinstance(error, DatasetError):
            raise
        raise fault(op, path, "an intact zip file", str(error) or type(error).__name__) from None
    except OSError as error:
        raise fault(op, path, "a file that can be read", str(error), "check the path") from None


def _check_directory(
    op: str,
    path: Path,
    archive: zipfile.ZipFile,
    wanted: Callable[[str], bool],
    max_member: int,
    max_total: int,
) -> dict[str, zipfile.ZipInfo]:
    """The wanted entries of a zip file's directory, by name."""
    chosen: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for entry in archive.infolist():
        name = entry.filename
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if ".." in parts or parts[:1] == ("/",) or ":" in name:
            raise fault(op, path, "names inside the archive", repr(name), "do not trust this file")
        if not wanted(name):
            continue
        if name in chosen:
            raise fault(op, path, "each name once", f"{name} twice")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise fault(
                op,
                path,
                "files that are stored or deflated",
                f"{name} with method {entry.compress_type}",
                "pack the archive again",
            )
        total += entry.file_size
        if entry.file_size > max_member or total > max_total:
            raise fault(
                op,
                path,
                f"at most {max_member} bytes for each file and {max_total} in all",
                f"{name} of {entry.file_size} bytes, {total} so far",
            )
        if entry.compress_size > (there := path.stat().st_size):
            # a read would make room for all of them first
            claim = f"{entry.compress_size:,} bytes of {name} in a file of {there:,}"
            raise fault(op, path, "an intact zip file", claim)
        chosen[name] = entry
    return chosen


def tar_members(
    op: str, path: Path, names: Collection[str], max_member: int, max_total: int
) -> dict[str, bytes]:
    """The plain files of these names (without their folders) in a .tar.gz file.

    No more than `max_total` bytes are decompressed, whatever lies between the members.
    """
    found: dict[str, bytes] = {}
    try:
        with gzip.open(path) as file, _tar_stream(_Limited(op, path, file, max_total)) as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if name not in names or not member.isreg():
                    continue
                if name in found:
                    raise fault(op, path, "each name once", f"{name} twice")
                if member.size > max_member:
                    raise fault(
                        op,
                        path,
                        f"at most {max_member} bytes for each file",
                        f"{name} of {member.size} bytes",
                    )
                content = archive.extractfile(member)
                found[name] = content.read() if content else b""
                if len(found) == len(names):
                    break
    except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError) as error:
        raise fault(op, path, "an intact .tar.gz file", str(error) or "a truncated one") from None
    except gzip.BadGzipFile as error:
        raise fault(op, path, "an intact .tar.gz file", str(error)) from None
    except OSError as error:
        raise fault(op, path, "a file that can be read", str(error), "check the path") from None
    return found


def _tar_stream(stream: Any) -> tarfile.TarFile:
    """A tar file that is read once, front to back, and needs nothing of its stream but read()."""
    return tarfile.open(fileobj=stream, mode="r|", tarinfo=_Entry)


class _Entry(tarfile.TarInfo):
    """An entry of a tar file; one that only describes the next is read whole, so it is limited."""

    _describing = (
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    )

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Entry:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in cls._describing and entry.size > _MAX_DESCRIPTION:
            raise tarfile.ReadError(f"a name or description of {entry.size} bytes")
        return entry


class _Limited:
    """A stream that ends in DatasetError rather than give more than `limit` bytes."""

    def __init__(self, op: str, path: Path, stream: gzip.GzipFile | BinaryIO, limit: int) -> None:
        self.op, self.path, self.stream, self.limit = op, path, stream, limit
        self.count = 0

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`."""
        data = self.stream.read(min(size, self.limit + 1 - self.count))
        self.count += len(data)
        if self.count > self.limit:
            raise fault(
                self.op,
                self.path,
                f"at most {self.limit} bytes inside",
                "more than that",
                "do not trust this file",
            )
        return data
