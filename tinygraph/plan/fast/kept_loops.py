"""Where numba keeps machine code: a folder for each loop, sealed when it is left.

    numba/KEY/HASH/NAME.nbi, .nbc   what numba writes: pickles, and object code in them
    numba/KEY/sha256                the digest of names and contents of all these files

numba believes what it finds.  A file that is empty, cut or overwritten would be an error at each
run, or machine code of rubbish: with another digest the folder is emptied before numba looks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tinygraph.base.build_cache import folder, key, locked, private_folder, sum_of, usable, warn
from tinygraph.base.trust import close_to_others, make_private, why_not_ours

SEAL = "sha256"


@contextmanager
def kept(parts: Iterable[str], named: str = "") -> Iterator[Path]:
    """The folder for a loop, held against other processes and threads until it is left.

    Parameters
    ----------
    parts : strings
        What tells the loop from others, but for its source, which numba looks at.
    named : str
        The folder for all loops that the user wants, in the place of our cache.
    """
    base = usable(named, "", "NUMBA_CACHE_DIR", True) if named else folder() / "numba"
    path = base / key(parts)
    if reason := _why_not_ours(path):
        path = private_folder(f"{path} is not loaded: {reason}") / "numba" / path.name
    make_private(path.parent)
    with locked(path):
        make_private(path)
        held, seal = any(path.iterdir()), path / SEAL
        if held and not (seal.is_file() and seal.read_bytes() == _digest(path)):
            if seal.is_file():  # else a process was killed before it could seal
                warn(f"{path} was damaged, and is built again")
            forget(path)
        try:
            yield path
        finally:
            for inner in path.rglob("*"):
                close_to_others(inner)
            seal.write_bytes(_digest(path))


def forget(path: Path) -> bool:
    """Throw away what the folder holds; whether there was anything but a seal."""
    held = [inner for inner in path.iterdir() if inner.name != SEAL]
    for inner in path.iterdir():
        shutil.rmtree(inner) if inner.is_dir() else inner.unlink()
    return bool(held)


def _why_not_ours(path: Path) -> str:
    for inner in (path, *path.rglob("*")):
        if reason := why_not_ours(inner):
            return f"{inner} {reason}"
    return ""


def _digest(path: Path) -> bytes:
    """Of the names and contents of all files but the seal."""
    files = sorted(p for p in path.rglob("*") if p.is_file() and p != path / SEAL)
    return key(x for p in files for x in (os.path.relpath(p, path), sum_of(p))).encode()
