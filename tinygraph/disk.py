"""Files that are whole or not there, also after a crash or a loss of power.

    temporary file beside the target -> flush, fsync -> rename over the target -> fsync of folder

After a crash at any of these points the target holds the old bytes or the new, never a mixture.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def temporary_beside(path: Path) -> Path:
    """A name beside a file that no other process or thread uses, and that no reader looks for."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write; on disk in full when the block ends, and gone if the block fails."""
    try:
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def replace_file(path: Path, data: bytes) -> Path:
    """Replace a file in one step; a reader, or a crash, finds the old bytes or the new ones."""
    temporary = temporary_beside(path)
    with new_file(temporary) as file:
        file.write(data)
    try:
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)
    return path


def sync_folder(folder: Path) -> None:
    """Make renames last; Windows has no such call, and does not need it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
