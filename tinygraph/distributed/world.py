"""World: the processes that train together.  A process that was started alone is a world of one.

A launcher such as `mpiexec -n 4` starts the same program four times: the ranks 0 ... 3.  What they
have to say to each other is a method of World.  This class is also the world of one process, where
every method is the identity, so that a program is the same text with and without a launcher; Mpi
(mpi.py) and Nccl (nccl.py) send.

The methods take arrays as they are.  The functions of collectives.py, of the same names, look at
their arguments first.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.base.streams import flush
from tinygraph.engine import Array

_NOTHING = nullcontext()


class Handle:
    """The result of an operation that goes on while something else is computed."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def test(self) -> bool:
        """Whether it is done; it moves on where this is asked now and then."""
        return True

    def wait(self) -> Any:
        """The result, when it is there."""
        return self.result


def own_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class World:
    """The ranks of a launch, and here of one process: what arrives is what was sent.

    Attributes
    ----------
    name : str
        What carries the data: "one process", "MPI" or "NCCL".
    rank, size : int
        The number of this process, and how many there are.
    local_rank, local_size : int
        The same among the processes of this machine.
    local_cores : int
        The cores that the processes of this machine may use, all of them together.
    failed : int or None
        The rank that has failed, where all have heard of it: it says so.
    resume_hint : str
        What to do after a failure, see `advise`.
    bytes_sent : int
        Of arrays, by this rank to others so far.  Counted is what an algorithm that wastes nothing
        sends: one array to each of the others in all_gather, and twice (size - 1) / size of one in
        all_reduce.  How the library moves them on is its own affair.
    """

    name = "one process"
    rank, size = 0, 1
    local_rank, local_size = 0, 1
    local_cores = len(own_cores())
    failed: int | None = None
    resume_hint = ""
    bytes_sent = 0

    @property
    def crowd(self) -> str:
        """What is to be said where this machine has more ranks than cores; else nothing."""
        ranks, cores = self.local_size, self.local_cores
        if ranks <= cores:
            return ""
        return (
            f"more ranks than cores: {ranks} on {cores} of {socket.gethostname()}, and a rank that "
            f"waits is busy too; `mpiexec -n {cores}` is faster"
        )

    def watched(self, what: str) -> AbstractContextManager[Any]:
        """Around something that waits for other ranks: it may not last for ever, see watch.py."""
        return _NOTHING

    def advise(self, words: str) -> None:
        """What to do after a failure: the last words, whatever ends the launch.  For all ranks."""
        self.resume_hint = words

    def patiently(self) -> AbstractContextManager[Any]:
        """Around a wait for the first rank, while it reads, writes or measures for all."""
        return _NOTHING

    def set_timeout(self, timeout: float | None) -> None:
        """Let a rank wait for another at most so many seconds; None: by what it waited before."""

    # ---- arrays of equal shapes ---------------------------------------------------------------

    def all_to_all(self, parts: Array) -> Array:
        """(size, ...) -> (size, ...): part r goes to rank r; what rank r sent stands at r."""
        return parts

    def all_gather(self, x: Array) -> Array:
        """(...) -> (size, ...): the arrays of all ranks."""
        return x[np.newaxis]

    def all_reduce(self, x: Array, op: str = "sum", out: Array | None = None) -> Array:
        """The sum, mean, prod, min or max over ranks, element by element: ((0+1)+(2+3))+...

        Several ranks write it into `out`, an array like x and another one, where there is one.
        """
        return x

    def reduce_scatter(self, parts: Array, op: str = "sum") -> Array:
        """(size, ...) -> (...): this rank's part of the sum over ranks, in the same order."""
        return parts[0]

    def broadcast(self, x: Array, root: int = 0) -> Array:
        """The array of one rank; the others show shape and dtype with theirs."""
        return x

    # ---- arrays of different shapes -----------------------------------------------------------

    def all_gather_rows(self, x: Array, out: Array | None = None) -> Array:
        """(n_r, ...) -> (sum of n_r, ...): the rows of all ranks, those of rank 0 first."""
        if out is None or out is x:
            return x
        out[...] = x
        return out

    def exchange(self, parts: Sequence[Array]) -> list[Array]:
        """A list of `size` arrays of any shapes: array r goes to rank r, that of rank r is at r."""
        return list(parts)

    def send(self, x: Array, to: int, tag: int = 0) -> None:
        """Send an array to another rank, which waits for it in `recv`."""
        self._nobody("send", to)

    def recv(self, source: int, tag: int = 0) -> Array:
        """The array that another rank sends with that tag."""
        self._nobody("recv", source)

    def _nobody(self, op: str, other: int) -> NoReturn:
        raise ArgumentError(op, "rank", "another rank", f"{other} in a world of one process")

    # ---- begun now, waited for later ----------------------------------------------------------

    def start_all_to_all(self, parts: Array) -> Handle:
        """`all_to_all`, which goes on while something else is computed; parts stays unchanged."""
        return Handle(parts)

    def start_all_gather_rows(self, x: Array) -> Handle:
        """`all_gather_rows`, which goes on while something else is computed; x stays unchanged."""
        return Handle(x)

    # ---- anything else ------------------------------------------------------------------------

    def broadcast_object(self, thing: Any, root: int = 0) -> Any:
        """What one rank has, for all: numbers, words, dicts, arrays."""
        return thing

    def all_gather_object(self, thing: Any) -> list[Any]:
        """What each rank has, by rank."""
        return [thing]

    def barrier(self) -> None:
        """Wait until all ranks are here."""

    def abort(self, code: int = 1) -> NoReturn:
        """End all ranks at once."""
        flush()
        os._exit(code)

    def finalize(self) -> None:
        """End the communication; nothing can be sent any more."""

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}: {self.name}>"
