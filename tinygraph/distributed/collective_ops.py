"""The ops of functions.py: what the ranks say to each other, and its adjoint in backward.

    rows       the samples of each rank, in order         columns    the features of each rank

Only arrays of equal shapes, or rows and columns that are dealt out as said, are known to a plan; so
every op says its shape before anything is sent.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np

from tinygraph.base import DeviceError, ShapeError, frozen
from tinygraph.distributed import collectives
from tinygraph.distributed.joined import world
from tinygraph.distributed.tree_sum import TreeSum
from tinygraph.engine import Array, Gradients, Memory, Needs, Op, Parameter, Shape, Spec

Counts = tuple[int, ...]  # one for each rank


class Collective(Op):
    """No arithmetic of its own: where kernels run, it does the same."""

    communicates = True
    on_gpus: ClassVar[bool] = False  # whether it is nothing but what ranks with GPUs can say

    def forward_kernel(self, mem: Memory, *arrays: Any) -> tuple[Array, Any]:
        if not self.on_gpus and not mem.device.on_host:
            way_out = "x.to('cpu') before it"
            raise DeviceError(self.name, "x", "an array of the host", "one of a GPU", way_out)
        return self.forward(mem, *arrays)

    def backward_kernel(self, mem: Memory, grad: Array, saved: Any, needs: Needs) -> Gradients:
        return self.backward(mem, grad, saved, needs)


# ---- arrays of equal shapes ---------------------------------------------------------------------


@frozen
class AllGather(Collective):
    on_gpus = True

    def infer(self, x: Spec) -> Spec:
        return Spec((world().size, *x.shape), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return collectives.all_gather(x), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (collectives.reduce_scatter(gy),)


@frozen
class ReduceScatter(Collective):
    how: str

    def infer(self, parts: Spec) -> Spec:
        _require_parts(self.name, parts.shape)
        return Spec(parts.shape[1:], parts.dtype)

    def forward(self, mem: Memory, parts: Array) -> tuple[Array, Any]:
        return collectives.reduce_scatter(parts, self.how), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        every = collectives.all_gather(gy)
        return (every / gy.dtype.type(len(every)) if self.how == "mean" else every,)


@frozen
class AllToAll(Collective):
    on_gpus = True

    def infer(self, parts: Spec) -> Spec:
        _require_parts(self.name, parts.shape)
        return parts

    def forward(self, mem: Memory, parts: Array) -> tuple[Array, Any]:
        return collectives.all_to_all(parts), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (collectives.all_to_all(gy),)


@frozen
class AllReduce(Collective):
    how: str
    on_gpus = True

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return collectives.all_reduce(x, self.how), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (collectives.all_reduce(gy, self.how),)


@frozen
class Broadcast(Collective):
    root: int

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return collectives.broadcast(x, self.root), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        flat = gy.reshape(-1)
        parts = [flat if rank == self.root else flat[:0] for rank in range(world().size)]
        if world().rank == self.root:
            return (_sum_of(parts).reshape(gy.shape),)
        collectives.exchange(parts)
        return (mem.zeros(gy.shape, gy.dtype),)


# ---- rows and columns, dealt out to the ranks ---------------------------------------------------


@frozen
class AllGatherRows(Collective):
    """(n_r, ...) -> (N, ...); `rows` are the n of all ranks."""

    rows: Counts

    def infer(self, x: Spec) -> Spec:
        _require_count(self.name, "rows", x.shape[:1], self.rows)
        return Spec((sum(self.rows), *x.shape[1:]), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        out = collectives.all_gather_rows(x)
        if len(out) != sum(self.rows):
            expected = f"{list(self.rows)}, {sum(self.rows)} in all"
            raise ShapeError(self.name, "rows", expected, f"{len(out)} rows of all ranks")
        return out, None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (_sum_of(_cut(gy, self.rows)),)


@frozen
class ReduceScatterRows(Collective):
    """(N, ...) -> (n_r, ...), the sum over ranks of the rows of this one."""

    rows: Counts

    def infer(self, x: Spec) -> Spec:
        _require_total(self.name, "rows", x.shape[:1], self.rows)
        return Spec((self.rows[world().rank], *x.shape[1:]), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return _sum_of(_cut(x, self.rows)), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (collectives.all_gather_rows(gy),)


@frozen
class ColumnsToRows(Collective):
    """(N, ..., own columns) -> (own rows, ..., all columns)."""

    rows: Counts
    columns: Counts

    def infer(self, x: Spec) -> Spec:
        _require_total(self.name, "rows", x.shape[:1], self.rows)
        _require_count(self.name, "columns", x.shape[-1:], self.columns)
        shape = (self.rows[world().rank], *x.shape[1:-1], sum(self.columns))
        return Spec(shape, x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return _to_rows(x, self.rows), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (_to_columns(gy, self.columns),)


@frozen
class RowsToColumns(Collective):
    """(own rows, ..., all columns) -> (N, ..., own columns)."""

    rows: Counts
    columns: Counts

    def infer(self, x: Spec) -> Spec:
        _require_count(self.name, "rows", x.shape[:1], self.rows)
        _require_total(self.name, "columns", x.shape[-1:], self.columns)
        shape = (sum(self.rows), *x.shape[1:-1], self.columns[world().rank])
        return Spec(shape, x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        return _to_columns(x, self.columns), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (_to_rows(gy, self.rows),)


def _to_rows(x: Array, rows: Counts) -> Array:
    return np.concatenate(collectives.exchange(_cut(x, rows)), axis=-1)


def _to_columns(x: Array, columns: Counts) -> Array:
    parts = [np.moveaxis(part, 0, -1) for part in _cut(np.moveaxis(x, -1, 0), columns)]
    return np.concatenate(collectives.exchange(parts), axis=0)


def _cut(x: Array, counts: Counts) -> list[Array]:
    """The rows of each rank."""
    return [x[first:stop] for first, stop in pairwise(accumulate(counts, initial=0))]


def _sum_of(parts: list[Array]) -> Array:
    """The sum over ranks of what each of them has for this one, in the order of all_reduce."""
    received = collectives.exchange(parts)
    tree = TreeSum(len(received), np.add)
    for rank, part in enumerate(received):
        tree.put((0, rank), part)
    ((_, total),) = tree.nodes
    return total


# ---- from one rank to another -------------------------------------------------------------------

# What `recv` depends on, so that backward comes there; it gets no gradient itself.
NOTHING_BEFORE = Parameter(0.0)


@frozen
class Send(Collective):
    to: int
    tag: int

    def infer(self, x: Spec) -> Spec:
        return Spec((), x.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        collectives.send(np.array(mem.needs[0]), self.to, self.tag)  # whether it waits for one
        collectives.send(x, self.to, self.tag)
        return mem.zeros((), x.dtype), None

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        return (collectives.recv(self.to, self.tag),)


@frozen
class Recv(Collective):
    source: int
    shape: Shape
    dtype: Any
    tag: int
    after: bool

    def infer(self, x: Spec) -> Spec:
        return Spec(self.shape, self.dtype)

    def forward(self, mem: Memory, x: Array) -> tuple[Array, Any]:
        waited_for = bool(collectives.recv(self.source, self.tag))
        value = collectives.recv(self.source, self.tag)
        if value.shape != self.shape or value.dtype != self.dtype:
            expected = f"{self.dtype}{list(self.shape)}"
            got = f"{value.dtype}{list(value.shape)} from rank {self.source}"
            raise ShapeError(self.name, "shape", expected, got)
        return value, (waited_for, x.shape, x.dtype)

    def backward(self, mem: Memory, gy: Array, saved: Any, needs: Needs) -> Gradients:
        waited_for, shape, dtype = saved
        if waited_for:
            collectives.send(gy, self.source, self.tag)
        return (mem.zeros(shape, dtype) if self.after else None,)


# ---- shapes --------------------------------------------------------------------------------------


def _require_parts(op: str, shape: Shape) -> None:
    if not shape or shape[0] != world().size:
        expected = f"{world().size} parts on axis 0, one for a rank"
        raise ShapeError(op, "parts", expected, f"shape {shape}")


def _require_count(op: str, what: str, size: Shape, counts: Counts) -> None:
    if size != counts[world().rank : world().rank + 1]:
        raise ShapeError(op, "x", f"{counts[world().rank]} {what}, this rank's", size)


def _require_total(op: str, what: str, size: Shape, counts: Counts) -> None:
    if size != (sum(counts),):
        raise ShapeError(op, "x", f"{sum(counts)} {what}, those of all ranks", size)
