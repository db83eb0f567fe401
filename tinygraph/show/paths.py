"""The files that pictures go to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinygraph.errors import ArgumentError


def writable(op: str, path: str | Path, suffixes: Sequence[str]) -> Path:
    """`path` as a Path whose suffix says a known format and whose folder exists, or an error."""
    target = Path(path).expanduser()
    if target.suffix.lower() not in suffixes:
        known = ", ".join(suffixes)
        raise ArgumentError(op, "path", f"a file name that ends in one of {known}", repr(str(path)))
    if target.is_dir():
        raise ArgumentError(op, "path", "a file", f"the folder {target}")
    if not target.parent.is_dir():
        raise ArgumentError(
            op,
            "path",
            "a file in a folder that exists",
            f"{target}",
            f"make the folder {target.parent} first",
        )
    return target
