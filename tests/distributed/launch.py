"""Run a program on several ranks, as a child of the tests: pytest itself never runs under MPI.

pytest under mpiexec waits for ever where one rank fails a test that the others pass.
"""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MPIEXEC = Path(sys.executable).parent / "mpiexec"  # not resolved: that of the environment
HAS_MPI = find_spec("mpi4py") is not None and MPIEXEC.exists()

# Warnings are errors, but for one that depends on the machine.
STRICT = ("-W", "error", "-W", "ignore:more ranks than cores")

# Seconds of a launch: what takes a few alone may take minutes where cores are few and taken.
LIMIT = 600.0

needs_mpi = pytest.mark.skipif(not HAS_MPI, reason="no mpi4py with an mpiexec beside this Python")


class Ended(NamedTuple):
    """How a launch ended: mpiexec's exit code, None if it took too long; what all ranks printed."""

    code: int | None
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """What ranks get: this checkout, one thread each, and no trace of another launch.

    A rank that waits gives way at once: there may be fewer cores than ranks.
    """
    alone = ("PMI_", "PMIX_", "OMPI_", "MPI_", "TINYGRAPH_COLLECTIVE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(alone)}
    ones = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MPIR_CVAR_POSIX_POLL_FREQUENCY")
    return {**kept, **dict.fromkeys(ones, "1"), "PYTHONPATH": str(ROOT), **more}


def mpi_line(ranks: int) -> list[str]:
    """What stands before the arguments of Python, for so many ranks."""
    return [str(MPIEXEC), "-n", str(ranks), sys.executable]


def command(program: str, ranks: int, *arguments: str) -> list[str]:
    """mpiexec's line for a program: the name of a file in on_ranks, or its text."""
    text = "\n" in program or " " in program
    what = ["-c", program] if text else [str(HERE / "on_ranks" / f"{program}.py")]
    return [*mpi_line(ranks), *STRICT, *what, *arguments]


def start(program: str, ranks: int, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """The launch, in a process group of its own."""
    return subprocess.Popen(
        command(program, ranks, *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
        start_new_session=True,
    )


def launch(program: str, ranks: int, *arguments: str, limit: float = LIMIT, **more: str) -> Ended:
    """Run a program on so many ranks, at most `limit` seconds; whatever is left is killed."""
    child = start(program, ranks, *arguments, **more)
    try:
        out, err = child.communicate(timeout=limit)
        return Ended(child.returncode, out, err)
    except subprocess.TimeoutExpired:
        kill(child)
        return Ended(None, *child.communicate())
    finally:
        kill(child)


def kill(child: subprocess.Popen[str]) -> None:
    """Kill mpiexec and all that it has started: they are one session."""
    for pid in in_session(child.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def in_session(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # pid (name) state parent group session ...; a name may have any signs
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(number) == session and state not in "ZX":
            found.append(int(stat.parent.name))
    return found


def succeed(program: str, ranks: int, *arguments: str, **more: str) -> str:
    """Run a program that must do without an error on all ranks: what they printed."""
    ended = launch(program, ranks, *arguments, **more)
    assert ended.code == 0, f"code {ended.code}\n{ended.out[-3000:]}\n{ended.err[-6000:]}"
    return ended.out
