"""Whether only the user can have written a file: what a cache holds is loaded, and its code runs.

It is looked at as sshd looks at the keys of a user: the file, its folder and each folder above it
belong to the user or to root, and nobody else may write there.  A folder where others may make
files, but not take away those of the user (a sticky one, such as /tmp), is no home for a cache
either: who comes first takes its name.  Such a folder may stand higher up, above folders of ours.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tinygraph.base.paths import typed

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def open_to_others(path: Path, home: Path | None = None) -> str:
    """How others can have written a file or folder, or "".

    Parameters
    ----------
    path : Path
        A resolved path: its links are followed.  What is not there yet is not looked at.
    home : Path, optional
        The resolved folder that the user has named, in which `path` lies; `path` itself if not
        given.  It must not be a sticky folder, nor lie in one.

    Returns
    -------
    str
        Which file or folder it is, why, and what to do.

    Raises
    ------
    OSError
        A file stands where a folder is meant, or one of the folders may not be looked into.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     inner = Path(folder).resolve() / "cache"
    ...     inner.mkdir()
    ...     inner.chmod(0o777)
    ...     "may be written by others (mode 777)" in open_to_others(inner)
    True
    """
    home = path if home is None else home
    for place in (path, *path.parents):
        try:
            found = os.lstat(place)
        except FileNotFoundError:
            continue
        sticky = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
        reason = _written_by_others(found)
        if reason and not (sticky and found.st_uid == 0 and place in home.parent.parents):
            mine = found.st_uid == os.geteuid() and not sticky
            way_out = f"; `chmod go-w {typed(place)}` ends that" if mine else ""
            return f"{place} {reason}{way_out}"
    return ""


def why_not_ours(path: Path) -> str:
    """Why a file, or a folder, in a folder of ours is not to be loaded, or "": a link, another's.

    What is not there is nobody's.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return ""
    kinds = (stat.S_ISREG, stat.S_ISDIR)
    return _written_by_others(found) if any(is_(found.st_mode) for is_ in kinds) else "is no file"


def _written_by_others(found: os.stat_result) -> str:
    if found.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (number {found.st_uid})"
    mode = stat.S_IMODE(found.st_mode)
    return f"may be written by others (mode {mode:o})" if mode & _BY_OTHERS else ""


def close_to_others(path: Path) -> None:
    """Take the right to write away from others, which a umask of 0 has given them."""
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_BY_OTHERS)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that lack, for the user alone."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)  # another process may be first
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder")
