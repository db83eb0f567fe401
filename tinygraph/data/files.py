"""Files that a user has: where they are looked for, whether they are the published ones, and their
bytes, compressed or not."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from tinygraph.base import AnyPath, DatasetError, as_path, install
from tinygraph.base.disk import open_regular

AGAIN = "delete it and fetch it again (--download)"
WAYS_OUT = "name the folder with --data-dir or $TINYGRAPH_DATA, or fetch the files with --download"


def fault(
    op: str, path: Path | str, expected: str, got: object, way_out: str = AGAIN
) -> DatasetError:
    """The error for a file that is not what it should be."""
    return DatasetError(op, str(path), expected, got, way_out)


class Published(NamedTuple):
    """A file as it was published: its length and its SHA-256."""

    size: int
    sha256: str


def folders(data_dir: AnyPath | None, *inner: str) -> list[Path]:
    """The named folder and folders inside it, the first choice first; none where none was named."""
    named = data_dir or os.environ.get("TINYGRAPH_DATA")
    if not named:
        return []
    folder = as_path("data", "data_dir" if data_dir else "TINYGRAPH_DATA", named)
    return [folder, *(folder / name for name in inner)]


def missing(op: str, name: str, looked_in: list[Path], way_out: str = WAYS_OUT) -> DatasetError:
    """The error for a file that is in none of the folders."""
    if not looked_in:
        return DatasetError(op, name, "a folder that holds it", "none", way_out)
    where = f"nothing of that name in {' or '.join(map(str, looked_in))}"
    if not looked_in[0].is_dir():
        where = f"{looked_in[0]}, which is no folder"
    return DatasetError(op, name, "the file", where, way_out)


def find(
    op: str,
    names: Sequence[str],
    folders: list[Path],
    url: str,
    published: Published,
    download: bool,
) -> Path:
    """The first file of one of these names; fetched under the first name where there is none."""
    candidates = [folder / name for folder in folders for name in names]
    path = next((c for c in candidates if c.is_file()), None)
    if path is None and not download:
        raise missing(op, names[0], folders)
    return path or fetch(op, url, names[0], published.sha256, folders)


@contextmanager
def opened(op: str, path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, decompressed where it is a gzip file; DatasetError where that fails.

    Its first bytes tell whether it is compressed; its name does not matter.
    """
    try:
        with open_regular(path) as file:
            compressed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if compressed:
                with gzip.GzipFile(fileobj=file) as stream:
                    yield cast(BinaryIO, stream)
            else:
                yield file
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise fault(op, path, "an intact gzip file", str(error).rstrip(".")) from None
    except FileNotFoundError:
        raise fault(op, path, "a file", "nothing at that path", "check the path") from None
    except OSError as error:
        raise fault(op, path, "a file that can be read", error, "check the path") from None


def verify(op: str, path: Path, published: Published, content: bytes | None = None) -> None:
    """Raise unless the file, or what was read out of it, is byte for byte the published one."""
    of_text = "" if content is None else " of text"
    try:
        with path.open("rb") if content is None else io.BytesIO(content) as file:
            found = file.seek(0, os.SEEK_END)
            file.seek(0)
            if found != published.size:
                what = "truncated" if found < published.size else "too long"
                raise fault(op, path, f"{published.size} bytes{of_text}", f"{found}: it is {what}")
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise fault(op, path, "a file that can be read", error) from None
    if digest != published.sha256:
        raise fault(op, path, f"SHA-256 {published.sha256}{of_text}", f"{digest}: it is corrupt")


def library(op: str, module: str, name: str, what_for: str) -> Any:
    """A module of the extra `data`, or DatasetError where its library is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        expected = f"to be installed, for it {what_for}"
        raise DatasetError(op, name, expected, "no such library", install("data")) from None


def fetch(op: str, url: str, name: str, sha256: str, looked_in: list[Path]) -> Path:
    """Fetch url + name into the first folder, or into the user's cache where none was named.

    pooch compares the hash before the file takes its name.
    """
    pooch = library(op, "pooch", "pooch", "downloads")
    folder = looked_in[0] if looked_in else Path(pooch.os_cache("tinygraph")) / op
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url + name, f"sha256:{sha256}", name, folder))
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DatasetError(
            op,
            name,
            f"a download from {url}",
            reason,
            "try again later, or fetch the files elsewhere and name their folder with --data-dir",
        ) from None
