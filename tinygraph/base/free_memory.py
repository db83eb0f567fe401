"""How much memory is free, so that a size out of a file or a setting is refused before it is taken.

Linux gives more memory than there is, and ends a process that writes to it: of a size between what
is free and what the machine has, nobody would hear a MemoryError.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

SMALL = 1 << 26  # bytes that are taken without a look

_MEMINFO = Path("/proc/meminfo")
_GROUPS = Path("/sys/fs/cgroup")
_FILES_OF_GROUPS = (  # of version 2, and of version 1
    (_GROUPS, "memory.max", "memory.current", "inactive_file"),
    (_GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_bytes() -> int | None:
    """The bytes of memory that may still be taken; None where the system does not say."""
    found = [n for n in (_of_machine(), _of_group()) if n is not None]
    return min(found) if found else None


def too_large(count: int) -> str:
    """Why so many bytes cannot be taken, as an error says it; "" where they can.

    >>> too_large(1000)
    ''
    """
    if count <= SMALL:
        return ""
    free = free_bytes()
    return "" if free is None or count <= free else f"{count:,} bytes, of which {free:,} are free"


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def _of_group() -> int | None:
    """Of the container or job that this process is in; what was read from files counts as free."""
    for folder, most, used, cached in _FILES_OF_GROUPS:
        with suppress(OSError, ValueError):
            limit = (folder / most).read_text(encoding="ascii").strip()
            if limit == "max":
                continue
            taken = int((folder / used).read_text(encoding="ascii"))
            lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
            kept = {name: int(n) for name, _, n in (line.partition(" ") for line in lines)}
            return max(int(limit) - taken + kept.get(cached, 0), 0)
    return None
