"""Files that are whole or not there, also after a crash or a loss of power.

    temporary file beside the target -> flush, fsync -> rename over the target -> fsync of folder

After a crash at any of these points the target holds the old bytes or the new, never a mixture.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, data: bytes) -> Path:
    """Replace a file in one step; a reader, or a crash, finds the old bytes or the new ones."""
    # No other process or thread uses this name, and no reader looks for it.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with temporary.open("wb") as file:
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


def sync_folder(folder: Path) -> None:
    """Make renames last; Windows has no such call, and does not need it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
