"""Where files of these experiments lie: in memory, so that a disk does not set the pace."""

from __future__ import annotations

import os
import tempfile


def memory_disk():
    """A folder in memory where there is one (Linux), else that of temporary files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
