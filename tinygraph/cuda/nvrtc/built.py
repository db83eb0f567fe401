"""Machine code that was built ahead of time, for machines without headers or a compiler.

    tinygraph kernels --build DIR --arch sm_90        where NVRTC is; no GPU is needed
    TINYGRAPH_CUBINS=DIR                              where the GPU is

    DIR/KEY.zip     KEY: SHA-256 of options, architecture, name, source, headers and macros

The version of NVRTC is no part of the key: nobody has to ask it.  A kernel that has changed since
is not found, and compiled as ever; so is one whose file is damaged, or that others can have written
(trust.py), with a warning.
"""

from __future__ import annotations

import os
import secrets
import shutil
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tinygraph.base import as_path
from tinygraph.base.build_cache import key, warn
from tinygraph.base.trust import open_to_others

FOLDER = "TINYGRAPH_CUBINS"


def built(parts: Sequence[str]) -> Path | None:
    """The file in the folder of $TINYGRAPH_CUBINS for what a kernel depends on, if it is there."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    path = _file(folder, parts)
    if not path.is_file():
        return None
    reason = open_to_others(path.resolve(), path.parent.resolve())
    reason = reason or _damage(path)
    if reason:
        warn(f"{path} is not loaded ({reason}); its kernel is compiled anew")
    return None if reason else path


def _damage(path: Path) -> str:
    """Why a file of machine code cannot be read, or ""."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name in ("cubin", "log", "about"):
                archive.read(name)  # it looks at the sum
    except Exception as error:  # zipfile has many
        return f"{type(error).__name__}: {error}"
    return ""


def store(path: Path, folder: Path | str, parts: Sequence[str]) -> None:
    """Put a file of machine code where `built` looks for it: whole, or not at all."""
    target = _file(folder, parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        shutil.copyfile(path, temporary)
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _file(folder: Path | str, parts: Sequence[str]) -> Path:
    return as_path("kernels", FOLDER, folder) / f"{key(parts)}.zip"


def runs_on(gpu: str) -> list[str]:
    """The architectures whose machine code a GPU runs: its own, then older ones of its generation.

    Source: CUDA C++ Programming Guide, "Binary Compatibility".

    >>> runs_on("sm_89")[:3], runs_on("sm_121")
    (['sm_89', 'sm_88', 'sm_87'], ['sm_121', 'sm_120'])
    """
    major, minor = divmod(int(gpu.removeprefix("sm_")), 10)
    return [f"sm_{major}{older}" for older in range(minor, -1, -1)]
