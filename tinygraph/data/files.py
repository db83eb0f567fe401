"""Files that a user has: where they are looked for, and whether they are the published ones."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from tinygraph.errors import DatasetError, install

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


def folders(data_dir: str | Path | None, *inner: str) -> list[Path]:
    """The named folder and folders inside it, the first choice first; none where none was named."""
    named = data_dir or os.environ.get("TINYGRAPH_DATA")
    if not named:
        return []
    folder = Path(named).expanduser()
    return [folder, *(folder / name for name in inner)]


def missing(op: str, name: str, looked_in: list[Path], way_out: str = WAYS_OUT) -> DatasetError:
    """The error for a file that is in none of the folders."""
    if not looked_in:
        return DatasetError(op, name, "a folder that holds it", "none", way_out)
    where = f"nothing of that name in {' or '.join(map(str, looked_in))}"
    if not looked_in[0].is_dir():
        where = f"{looked_in[0]}, which is no folder"
    return DatasetError(op, name, "the file", where, way_out)


def verify(op: str, path: Path, published: Published) -> None:
    """Raise unless the file is, byte for byte, the published one."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != published.size:
                what = "truncated" if found < published.size else "too long"
                raise fault(op, path, f"{published.size} bytes", f"{found}: it is {what}")
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise fault(op, path, "a file that can be read", error) from None
    if digest != published.sha256:
        raise fault(op, path, f"SHA-256 {published.sha256}", f"{digest}: it is corrupt")


def download(op: str, url: str, name: str, sha256: str, looked_in: list[Path]) -> Path:
    """Fetch url + name into the first folder, or into the user's cache where none was named.

    pooch compares the hash before the file takes its name.
    """
    try:
        import pooch
    except ImportError:
        raise DatasetError(
            op,
            "pooch",
            "to be installed, for it downloads",
            "no such library",
            install("data"),
        ) from None
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
