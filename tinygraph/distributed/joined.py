"""init: which world this process belongs to, asked once; rank, world_size, ... are those of it.

mpi4py is imported where a launcher has started this process, and nowhere else.
"""

from __future__ import annotations

import os
import re
from typing import NoReturn

from tinygraph.base import ArgumentError, DistributedError, install
from tinygraph.distributed.mpi import Mpi
from tinygraph.distributed.nccl import Nccl
from tinygraph.distributed.world import World

# What tells a process its rank: MPICH and Intel MPI, PMIx, Open MPI.  Slurm's own variable is none
# of them: it is also there in a job that starts one process.
LAUNCHERS = {
    "PMI_RANK": "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK": "",
}

_world: World | None = None


def init(backend: str | None = None, timeout: float | None = None) -> World:
    """Join the ranks of this launch; again, it changes nothing but the timeout.

    Parameters
    ----------
    backend : str, optional
        "mpi": arrays of the host are sent.  "nccl": also those of GPUs; the rank gets the GPU of
        its local rank as device "cuda", so ask for it before anything is moved there.  A launch
        may begin as "mpi" and become "nccl".  By default "mpi".
    timeout : float, optional
        How many seconds a rank may wait for another one in one collective before it ends the
        launch.  By default TINYGRAPH_COLLECTIVE_TIMEOUT in the environment, or else what is usual
        in this run: 20 s and 20 times the longest time between two collectives, at most 600 s.

    Returns
    -------
    World
        Without a launcher that of one process; mpi4py is not imported then.

    Raises
    ------
    DistributedError
        A launcher has started this process, and there is no mpi4py, or one of another MPI: each
        process would train alone.
    DeviceError
        "nccl", and a rank of the launch has no GPU of its own, or no NCCL.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.distributed.init()
    <rank 0 of 1: one process>
    """
    global _world
    if backend not in (None, "mpi", "nccl"):
        raise ArgumentError("init", "backend", "'mpi' or 'nccl'", repr(backend))
    if timeout is not None and not timeout > 0:
        raise ArgumentError("init", "timeout", "seconds above 0", repr(timeout))
    if _world is None:
        launcher = next((name for name in LAUNCHERS if name in os.environ), None)
        _world = World() if launcher is None else _joined(launcher)
    if backend == "nccl" and isinstance(_world, Mpi) and not isinstance(_world, Nccl):
        _world = Nccl(_world)
    if backend is not None and _world.size > 1 and backend != _world.name.lower():
        raise DistributedError(
            "init", "backend", f"{_world.name}, which carries this launch already", repr(backend),
            "tg.distributed.init() without one",
        )  # fmt: skip
    if timeout is not None:
        _world.set_timeout(timeout)
    return _world


def _joined(launcher: str) -> World:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise DistributedError(
            "init",
            "mpi4py",
            f"it to be there, for a launcher has started this process ({launcher} is set), and "
            "without it each process would train alone",
            f"{type(error).__name__}: {error}",
            install("mpi"),
        ) from error
    made = Mpi(MPI)
    asked = os.environ.get(LAUNCHERS[launcher])
    if asked is not None and re.fullmatch("[0-9]{1,9}", asked) and int(asked) != made.size:
        raise DistributedError(
            "init",
            "mpi4py",
            f"the {asked} processes that the launcher has started",
            f"{made.size}: mpi4py belongs to another MPI than that launcher "
            f"({MPI.Get_library_version().splitlines()[0].strip()})",
            "the mpiexec beside this Python, or mpi4py built for the other one",
        )
    return made if made.size > 1 else World()


def is_initialized() -> bool:
    """Whether this process has joined its launch: see `init`."""
    return _world is not None


def world() -> World:
    """The world that this process belongs to; joined, if it is not yet."""
    return init() if _world is None else _world


def rank() -> int:
    """The number of this process among all that train together: 0 where it is alone."""
    return world().rank


def world_size() -> int:
    """How many processes train together: 1 without a launcher."""
    return world().size


def local_rank() -> int:
    """The number of this process among those of this machine."""
    return world().local_rank


def barrier() -> None:
    """Wait until all ranks are here."""
    world().barrier()


def abort(code: int = 1) -> NoReturn:
    """End the processes of all ranks at once, with an exit code; nothing is saved."""
    world().abort(code)


def finalize() -> None:
    """End the communication, when all ranks have come to this: each is alone from now on.

    Python does it at its end.
    """
    global _world
    world().finalize()
    _world = World()
