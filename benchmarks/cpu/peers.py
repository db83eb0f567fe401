"""The peers' environments: one virtual environment each, made when it is asked for.

They lie in .venv/peers/NAME.  pip takes its own settings: where an index holds PyTorch's wheels for
CPUs, PIP_EXTRA_INDEX_URL names it, and several GB of CUDA libraries stay out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import children
from benchmarks.children import ROOT

DEFAULT_FOLDER = ROOT / ".venv/peers"
READY = ".ready"  # a stamp: pip has ended well
INSTALL_LIMIT = 1800.0  # seconds


@dataclass(frozen=True)
class Peer:
    """A library to compare with.

    Attributes
    ----------
    packages : tuple of tuples
        What pip is asked for: the first of these sets that can be installed.
    small : int
        So many of the sets are small enough to be installed without being asked.
    variables : mapping
        For the processes of its sides, where the user has not set them; {bin} is the folder of
        the environment's programs.
    scripts : mapping
        Programs that are put there, by name.
    """

    packages: tuple[tuple[str, ...], ...]
    small: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)


# tinygrad compiles with clang; the one of zig serves where none is installed.
_CLANG = '#!/bin/sh\nexec "$(dirname "$0")/python" -m ziglang clang "$@"\n'

PEERS = {
    "torch": Peer((("torch==2.13.0+cpu", "numpy"), ("torch", "numpy")), small=1),
    "jax": Peer((("jax==0.10.2", "numpy"),)),
    "tinygrad": Peer(
        (("tinygrad==0.14.0", "numpy", "ziglang"),),
        variables={"DEV": "CPU", "CC": "{bin}/clang"},
        scripts={"clang": _CLANG},
    ),
    "mygrad": Peer((("mygrad==2.5.0",),)),
    "dezero": Peer((("dezero==0.0.13", "numpy<1.24", "matplotlib"),)),  # it uses numpy.int
    "fast": Peer((("--editable", f"{ROOT}[fast]"),)),  # tinygraph's own, with numba
}


def python_of(folder: Path, name: str) -> Path:
    return folder / name / "bin/python"


def present(folder: Path, name: str) -> bool:
    return (folder / name / READY).exists() and python_of(folder, name).exists()


def make(
    folder: Path, name: str, sets: Sequence[Sequence[str]], limit: float = INSTALL_LIMIT
) -> str:
    """Make an environment with the first of these sets of packages that pip can install.

    Returns
    -------
    str
        "" once it stands; else the reason why not, and nothing is left behind.
    """
    place, reason = folder / name, "there is nothing to install"
    for packages in sets:
        shutil.rmtree(place, ignore_errors=True)
        try:
            reason = _install(folder, name, packages, limit)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = f"{type(error).__name__}: {error}"[:300]
        if not reason:
            (place / READY).write_text("\n".join(packages) + "\n", encoding="utf-8")
            return ""
    shutil.rmtree(place, ignore_errors=True)
    return reason


def _install(folder: Path, name: str, packages: Sequence[str], limit: float) -> str:
    """Make the environment, ask pip, put the scripts there; "" or the last error."""
    python = python_of(folder, name)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(folder / name)], [*pip, *packages]):
        done = children.run(command, limit)
        if done.returncode:
            return _last_error(done.stderr) or f"{command[2]} ended with code {done.returncode}"
    for script, text in PEERS[name].scripts.items() if name in PEERS else ():
        path = python.parent / script
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    return ""


def _last_error(text: str) -> str:
    """The last line of pip that names an error, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [""])[-1][:300]


def gather(folder: Path, asked: Sequence[str] | None) -> tuple[dict[str, Path], list[str]]:
    """The Python of each peer that can be compared with, and a line for each one left out.

    Parameters
    ----------
    asked : sequence of names, or None
        Environments that are missing are made for these.  None: those that stand, and PyTorch
        where pip finds its small wheel for CPUs.
    """
    found: dict[str, Path] = {}
    left_out = []
    for name, peer in PEERS.items():
        if asked is not None and name not in asked:
            continue
        wanted = peer.packages if asked is not None else peer.packages[: peer.small]
        reason = "not asked for; `make bench PEERS=...` makes its environment"
        if present(folder, name):
            reason = ""
        elif wanted:
            print(f"making the environment of {name} in {folder / name} ...", flush=True)
            reason = make(folder, name, wanted)
            reason = reason and f"its environment cannot be made: {reason}"
        if reason:
            left_out.append(f"{name}: {reason}")
        else:
            found[name] = python_of(folder, name)
    return found, left_out


def variables(name: str, python: Path) -> dict[str, str]:
    """What the processes of a peer's sides need in their environment; the user's settings win."""
    wanted = PEERS[name].variables if name in PEERS else {}
    return {
        key: os.environ.get(key, value.format(bin=python.parent)) for key, value in wanted.items()
    }
