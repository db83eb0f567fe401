"""Mpi: the ranks of an MPI launch, on mpi4py.

Arrays travel as bytes, so that every dtype of numbers does; sums are computed here, by numpy, in an
order that the number of ranks alone decides:

    ranks     0   1   2   3   4
    sum       (0 + 1) + (2 + 3)         the binary tree over ranks
                      ... + 4

Before a collective moves data, the ranks compare in a few microseconds what each is about to do, so
that different shapes, or all_reduce here and barrier there, are an error that says so on all ranks,
and no wrong number, crash or wait for ever.  Two have no such look: `send` and `recv`, where a
header with shape and dtype goes ahead, and `start_all_to_all`, which would have to wait.
"""

from __future__ import annotations

import atexit
import math
import os
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from tinygraph.base import DistributedError, ShapeError
from tinygraph.base.streams import flush
from tinygraph.distributed.ending import LastWord, end_together
from tinygraph.distributed.notes import Notes
from tinygraph.distributed.watch import Watcher
from tinygraph.distributed.world import Handle, World, own_cores
from tinygraph.engine import Array, Shape

REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_DIED = "a rank has died: all ranks are ended"
_SMALL = 1 << 15  # bytes of all ranks, below which each gets everything and adds it up itself
_SUMMED_BY_MPI = frozenset(np.dtype(kind).str for kind in ("f4", "f8", "i4", "i8"))
_AXES = 62  # that a header has room for; numpy has at most 64


class Mpi(World):
    """A launch of several processes.  `MPI` is mpi4py's module of that name."""

    name = "MPI"

    def __init__(self, MPI: Any) -> None:
        self.comm = MPI.COMM_WORLD.Dup()  # nobody else's messages
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        local = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = local.Get_rank(), local.Get_size()
        self.local_cores = len(set().union(*local.allgather(own_cores())))
        local.Free()
        self._mpi = MPI
        self._mine = np.zeros(2, np.int64)
        self._all = np.zeros((self.size, 2), np.int64)
        self._watcher = Watcher(self)
        self._last_word: LastWord | None = None
        atexit.register(self._withdraw)
        if self.size > 1:
            self._watcher.notes = Notes(MPI)
            end_together(self, self._watcher)
            self._last_word = LastWord(self, _DIED)

    def watched(self, what: str, peer: int | None = None) -> Watcher:
        return self._watcher.watch(what, peer)

    def advise(self, words: str) -> None:
        super().advise(words)
        self._withdraw()
        self._last_word = LastWord(self, f"{_DIED}\n{words}")

    def _withdraw(self) -> None:
        word, self._last_word = self._last_word, None
        if word is not None:
            word.withdraw()

    def patiently(self) -> AbstractContextManager[None]:
        return self._watcher.patiently()

    def set_timeout(self, timeout: float | None) -> None:
        self._watcher.set_timeout(timeout)

    # ---- what the ranks compare ---------------------------------------------------------------

    def _agree(self, op: str, dtype: Any = "", shape: Shape = (), how: str = "", n: int = 0) -> Any:
        """Make sure that all ranks do the same; returns each one's `n`, which may differ."""
        self._mine[0], self._mine[1] = _digest(op, str(dtype), shape, how), n
        self.comm.Allgather(self._mine, self._all)
        if (self._all[:, 0] != self._mine[0]).any():
            what = f"{op} of {dtype}{list(shape)}" if dtype else op
            self._disagree(op, f"{what}, {how}" if how else what)
        return self._all[:, 1]

    def _disagree(self, op: str, what: str) -> NoReturn:
        said = self.comm.allgather(what)
        raise DistributedError(
            op,
            "ranks",
            "the same call on all of them, with equal shapes and dtypes",
            "; ".join(f"rank {rank}: {words}" for rank, words in enumerate(said)),
            "every rank takes part in each collective, in the same order",
        )

    def _kind(self, x: Array) -> str:
        """What elements an array has, in the words of an error."""
        return str(x.dtype)

    # ---- arrays of equal shapes ---------------------------------------------------------------

    def all_to_all(self, parts: Array) -> Array:
        with self.watched("all_to_all"):
            self._agree("all_to_all", self._kind(parts), parts.shape)
            return self._all_to_all(parts)

    def _all_to_all(self, parts: Array) -> Array:
        out = np.empty(parts.shape, parts.dtype)
        self.bytes_sent += parts.nbytes - parts[self.rank].nbytes
        self.comm.Alltoall(_bytes(parts), _bytes(out))
        return out

    def all_gather(self, x: Array) -> Array:
        with self.watched("all_gather"):
            self._agree("all_gather", self._kind(x), x.shape)
            return self._all_gather(x)

    def _all_gather(self, x: Array) -> Array:
        out = np.empty((self.size, *x.shape), x.dtype)
        self.bytes_sent += (self.size - 1) * x.nbytes
        self.comm.Allgather(_bytes(x), _bytes(out))
        return out

    def all_reduce(self, x: Array, op: str = "sum", out: Array | None = None) -> Array:
        with self.watched("all_reduce"):
            self._agree("all_reduce", self._kind(x), x.shape, op)
            return self._divided(self._reduced(x, REDUCTIONS[op], out), op)

    def _reduced(self, x: Array, ufunc: np.ufunc, out: Array | None = None) -> Array:
        by_mpi = self.size == 2 and ufunc is np.add and x.dtype.str in _SUMMED_BY_MPI
        if not by_mpi and x.nbytes * self.size <= _SMALL:
            return copied(_tree(self._all_gather(x), ufunc), out)
        out = np.empty(x.shape, x.dtype) if out is None else out
        if by_mpi:
            self.bytes_sent += x.nbytes
            self.comm.Allreduce(np.ascontiguousarray(x), out)  # a + b = b + a: one order only
            return out
        # Each rank adds up one slice, and then all get all slices: the bytes of a ring.
        flat = np.ascontiguousarray(x).reshape(-1)
        cuts = [flat.size * r // self.size * x.itemsize for r in range(self.size + 1)]
        counts = [stop - start for start, stop in pairwise(cuts)]
        mine = counts[self.rank]
        self.bytes_sent += x.nbytes - mine + (self.size - 1) * mine
        slices = np.empty((self.size, mine // x.itemsize), x.dtype)
        byte = self._mpi.BYTE
        self.comm.Alltoallv(
            [_bytes(flat), counts, cuts[:-1], byte],
            [_bytes(slices), [mine] * self.size, [mine * r for r in range(self.size)], byte],
        )
        added = _bytes(_tree(slices, ufunc))
        self.comm.Allgatherv([added, mine, byte], [_bytes(out), counts, cuts[:-1], byte])
        return out

    def _divided(self, x: Array, op: str) -> Array:
        if op == "mean":
            x /= x.dtype.type(self.size)
        return x

    def reduce_scatter(self, parts: Array, op: str = "sum") -> Array:
        with self.watched("reduce_scatter"):
            self._agree("reduce_scatter", self._kind(parts), parts.shape, op)
            return self._divided(self._combined(self._all_to_all(parts), REDUCTIONS[op]), op)

    def _combined(self, parts: Array, ufunc: np.ufunc) -> Array:
        return _tree(parts, ufunc).copy()

    def broadcast(self, x: Array, root: int = 0) -> Array:
        with self.watched("broadcast"):
            self._agree("broadcast", self._kind(x), x.shape, f"from rank {root}")
            return self._broadcast(x, root)

    def _broadcast(self, x: Array, root: int) -> Array:
        out = np.array(x, order="C") if self.rank == root else np.empty(x.shape, x.dtype)
        self.bytes_sent += (self.size - 1) * x.nbytes if self.rank == root else 0
        self.comm.Bcast(_bytes(out), root)
        return out

    # ---- arrays of different shapes -----------------------------------------------------------

    def all_gather_rows(self, x: Array, out: Array | None = None) -> Array:
        with self.watched("all_gather_rows"):
            into, received, _ = self._rows(x, out)
            self.bytes_sent += (self.size - 1) * x.nbytes
            self.comm.Allgatherv(_bytes(x), received)
            return copied(into, out)

    def _rows(self, x: Array, out: Array | None = None) -> tuple[Array, list[Any], list[int]]:
        """Where the rows of all ranks arrive: the array, as MPI takes it, and each one's number."""
        rows = self._numbers_of_rows(x, out)
        shape = (sum(rows), *x.shape[1:])
        kept = out is not None and out.flags.c_contiguous and out.flags.writeable
        into = out if out is not None and kept else np.empty(shape, x.dtype)
        width = math.prod(x.shape[1:]) * x.itemsize
        counts = [n * width for n in rows]
        starts = [sum(counts[:r]) for r in range(self.size)]
        return into, [_bytes(into), counts, starts, self._mpi.BYTE], rows

    def _numbers_of_rows(self, x: Array, out: Array | None) -> list[int]:
        rows: list[int] = self._agree(
            "all_gather_rows", self._kind(x), x.shape[1:], n=len(x)
        ).tolist()
        shape = (sum(rows), *x.shape[1:])
        if out is not None and (out.shape != shape or out.dtype != x.dtype):
            expected = f"{x.dtype}{list(shape)}, for the rows of all ranks"
            got = f"{out.dtype}{list(out.shape)}"
            raise ShapeError("all_gather_rows", "out", expected, got)
        return rows

    def exchange(self, parts: Sequence[Array]) -> list[Array]:
        with self.watched("exchange"):
            self._agree("exchange")
            headers = np.stack([header_of(part) for part in parts])
            theirs = np.empty_like(headers)
            self.comm.Alltoall(headers, theirs)
            out = [self._announced(header) for header in theirs]
            self._swap(parts, out)
            return out

    def _swap(self, parts: Sequence[Array], out: Sequence[Array]) -> None:
        sent = b"".join(_bytes(part).data for part in parts)
        self.bytes_sent += len(sent) - parts[self.rank].nbytes
        received = np.empty(sum(part.nbytes for part in out), np.uint8)
        self.comm.Alltoallv(
            [sent, *_places(parts), self._mpi.BYTE], [received, *_places(out), self._mpi.BYTE]
        )
        at = 0
        for part in out:
            _bytes(part)[...] = received[at : at + part.nbytes]
            at += part.nbytes

    def send(self, x: Array, to: int, tag: int = 0) -> None:
        with self.watched(f"send to rank {to}", to):
            self.bytes_sent += x.nbytes
            self.comm.Send(header_of(x), to, tag)
            self.comm.Send(_bytes(x), to, tag)

    def recv(self, source: int, tag: int = 0) -> Array:
        with self.watched(f"recv from rank {source}", source):
            header = np.empty(_AXES + 3, np.int64)
            self.comm.Recv(header, source, tag)
            out = self._announced(header)
            self._receive(out, source, tag)
            return out

    def _receive(self, out: Array, source: int, tag: int) -> None:
        self.comm.Recv(_bytes(out), source, tag)

    def _announced(self, header: Array) -> Array:
        """Room for the array that a header announces."""
        return np.empty(*shape_and_dtype(header))

    # ---- begun now, waited for later ----------------------------------------------------------

    def start_all_to_all(self, parts: Array) -> Handle:
        out = np.empty(parts.shape, parts.dtype)
        sent = _bytes(parts)
        self.bytes_sent += parts.nbytes - parts[self.rank].nbytes
        return Pending(self, "all_to_all", self.comm.Ialltoall(sent, _bytes(out)), sent, out)

    def start_all_gather_rows(self, x: Array) -> Handle:
        with self.watched("all_gather_rows"):
            out, received, _ = self._rows(x)
        self.bytes_sent += (self.size - 1) * x.nbytes
        sent = _bytes(x)
        return Pending(self, "all_gather_rows", self.comm.Iallgatherv(sent, received), sent, out)

    # ---- anything else ------------------------------------------------------------------------

    def broadcast_object(self, thing: Any, root: int = 0) -> Any:
        with self.watched("broadcast_object"):
            self._agree("broadcast_object", how=f"from rank {root}")
            return self.comm.bcast(thing, root)

    def all_gather_object(self, thing: Any) -> list[Any]:
        with self.watched("all_gather_object"):
            self._agree("all_gather_object")
            return self.comm.allgather(thing)

    def barrier(self) -> None:
        with self.watched("barrier"):
            self._agree("barrier")

    def abort(self, code: int = 1) -> NoReturn:
        self._withdraw()
        flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI has a line of its own about it
        self.comm.Abort(code)
        raise SystemExit(code)

    def finalize(self) -> None:
        with self.watched("finalize"):
            self._mpi.Finalize()


class Pending(Handle):
    """What MPI moves while something else is computed; keeps what is sent until then."""

    def __init__(self, world: Mpi, what: str, request: Any, sent: Array, out: Array) -> None:
        super().__init__(out)
        self._world, self._what, self._request, self._sent = world, what, request, sent

    def test(self) -> bool:
        return self._request.Test()

    def wait(self) -> Array:
        with self._world.watched(self._what):
            self._request.Wait()
        return self.result


@lru_cache(maxsize=1024)
def _digest(op: str, dtype: str, shape: Shape, how: str) -> int:
    return zlib.crc32(repr((op, dtype, shape, how)).encode())


def _bytes(x: Array) -> Array:
    """The bytes of an array in row-major order: a view where it lies so, else a copy."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _tree(parts: Array, ufunc: np.ufunc) -> Array:
    """Combine parts[0], parts[1], ... as a binary tree, neighbours first; they are overwritten."""
    shape, step = parts.shape[1:], 1
    parts = parts.reshape(len(parts), -1)
    with np.errstate(all="ignore"):  # inf and nan are results, not accidents
        while step < len(parts):
            for i in range(0, len(parts) - step, 2 * step):
                ufunc(parts[i], parts[i + step], out=parts[i])
            step *= 2
    return parts[0].reshape(shape)


def header_of(x: Array) -> Array:
    """Dtype, place and shape as numbers, to go ahead of an array."""
    header = np.zeros(_AXES + 3, np.int64)
    header[0] = int.from_bytes(x.dtype.str.encode(), "little")
    header[1:3] = not isinstance(x, np.ndarray), x.ndim
    header[3 : 3 + x.ndim] = x.shape
    return header


def shape_and_dtype(header: Array) -> tuple[Shape, str]:
    """What a header announces."""
    code, axes = int(header[0]), int(header[2])
    dtype = code.to_bytes(8, "little").rstrip(b"\0").decode()
    return tuple(header[3 : 3 + axes].tolist()), dtype


def is_on_gpu(header: Array) -> bool:
    """Whether a header announces an array of a GPU."""
    return bool(header[1])


def _places(parts: Sequence[Array]) -> tuple[list[int], list[int]]:
    counts = [part.nbytes for part in parts]
    return counts, [sum(counts[:r]) for r in range(len(counts))]


def copied(made: Array, out: Array | None) -> Array:
    if out is None or made is out:
        return made
    out[...] = made
    return out
