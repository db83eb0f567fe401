"""The files that pictures go to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinygraph.base.disk import followed, reason, replace_file, way_out
from tinygraph.base.errors import ArgumentError
from tinygraph.base.paths import AnyPath, as_path


def writable(op: str, path: AnyPath, suffixes: Sequence[str]) -> Path:
    """`path` as a Path whose suffix says a known format and whose folder exists, or an error."""
    target = as_path(op, "path", path)
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


def write(op: str, target: Path, content: str | bytes) -> Path:
    """Replace a picture or page in one step, or say why that cannot be; the old one stays then.

    A link that the user has typed is followed, one in the folder of a run is replaced.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        replace_file(followed(target), data)
    except OSError as error:
        got = reason(error)
        raise ArgumentError(
            op, "path", f"a place that can be written, not {target}", got, way_out(error)
        ) from None
    return target
