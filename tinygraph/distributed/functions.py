"""The collectives on Tensors: what the ranks say to each other, with gradients.

Think of the launch as one function: it takes the inputs of all ranks, and its value is the sum of
the losses that they end in.  A collective is a linear part of it, and its backward is the adjoint:

    forward                                     backward
    all_gather        x_r -> all x              the parts of x_r in all gradients, added up
    reduce_scatter    the sum of parts r        all_gather
    all_to_all        part q goes to rank q     all_to_all
    all_reduce        y_r = sum of x            gx_r = sum of gy
    broadcast         y_r = x_root              at the root the sum of gy, elsewhere 0
    send, recv        x goes to another rank    its gradient comes back
    all_gather_rows, columns_to_rows            reduce_scatter_rows, rows_to_columns, and reversed

So all ranks have to call the same functions, and then `backward`, in the same order.  Where all
have the same loss it counts once for each: see `data_parallel`, which weighs.

Collectives have no arithmetic of their own, and a plan runs them as they are.  In a world of one
process they are identities.  Of Tensors on GPUs all_gather, all_to_all and all_reduce are taken, by
a launch that has joined by NCCL; the others raise DeviceError.

Source: ChainerMN (Akiba, Fukuda, Suzuki, "ChainerMN: scalable distributed deep learning framework",
2017), chainermn.functions; torch.distributed.nn.functional.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import ShapeError, one_of
from tinygraph.distributed import collectives
from tinygraph.distributed.collective_ops import (
    NOTHING_BEFORE,
    AllGather,
    AllGatherRows,
    AllReduce,
    AllToAll,
    Broadcast,
    ColumnsToRows,
    Counts,
    Recv,
    ReduceScatter,
    ReduceScatterRows,
    RowsToColumns,
    Send,
)
from tinygraph.distributed.joined import world
from tinygraph.distributed.tree_sum import share
from tinygraph.engine import Operand, Shape, Tensor, here


def all_gather(x: Operand) -> Tensor:
    """The Tensors of all ranks: (...) -> (world size, ...).

    Parameters
    ----------
    x : Tensor of any shape, the same on all ranks

    Returns
    -------
    Tensor
        Alike on all ranks; of the same dtype.

    Raises
    ------
    DistributedError
        Ranks with other shapes or dtypes.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.distributed.functions.all_gather(tg.ones(3)).shape  # in a world of one
    (1, 3)
    """
    return AllGather()(x)


def reduce_scatter(parts: Operand, op: str = "sum") -> Tensor:
    """This rank's part of the sum over ranks: (world size, ...) -> (...).

    `op` may be "mean", too.
    """
    return ReduceScatter(_linear("reduce_scatter", op))(parts)


def all_to_all(parts: Operand) -> Tensor:
    """Give each rank a part: (world size, ...) -> (world size, ...).

    parts[r] goes to rank r; at r of the result stands what rank r has sent here.
    """
    return AllToAll()(parts)


def all_reduce(x: Operand, op: str = "sum") -> Tensor:
    """The sum over ranks, element by element, on all of them.

    `op` may be "mean", too; products and extrema have no gradient here.

    >>> import tinygraph as tg
    >>> x = tg.Tensor([1.0, 2.0], requires_grad=True)
    >>> tg.distributed.functions.all_reduce(x).sum().backward()
    >>> x.grad
    array([1., 1.], dtype=float32)
    """
    return AllReduce(_linear("all_reduce", op))(x)


def broadcast(x: Operand, root: int = 0) -> Tensor:
    """The Tensor of the rank `root`; the others give one of the same shape and dtype."""
    return Broadcast(collectives.rank_among("broadcast", "root", root))(x)


def all_gather_rows(x: Operand, rows: Sequence[int] | None = None) -> Tensor:
    """The rows of all ranks, those of rank 0 first: (n, ...) -> (sum of n, ...).

    Parameters
    ----------
    x : Tensor (n, ...)
        n may differ from rank to rank, and be 0; the other sizes may not.
    rows : sequence of int, optional
        n of each rank.  By default those of the batch in a `data_parallel`; else the ranks ask each
        other, which no plan repeats.

    Returns
    -------
    Tensor (N, ...)
        Alike on all ranks.

    Raises
    ------
    ShapeError
        Other rows than were said.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.distributed.functions.all_gather_rows(tg.ones((2, 3))).shape
    (2, 3)
    """
    return AllGatherRows(_rows("all_gather_rows", x, rows))(x)


def reduce_scatter_rows(x: Operand, rows: Sequence[int] | None = None) -> Tensor:
    """This rank's rows of the sum over ranks: (N, ...) -> (n, ...).

    `rows` has the n of each rank; by default they are as even as can be.
    """
    shape = np.shape(x)
    total = shape[0] if shape else 0
    return ReduceScatterRows(_dealt("rows", total, rows))(x)


def columns_to_rows(x: Operand, rows: Sequence[int], columns: Sequence[int]) -> Tensor:
    """From all rows of some columns to some rows of all columns: (N, ..., o) -> (n, ..., O).

    `rows` has the n of each rank, `columns` the o of each.
    """
    return ColumnsToRows(_counts("rows", rows), _counts("columns", columns))(x)


def rows_to_columns(x: Operand, rows: Sequence[int], columns: Sequence[int]) -> Tensor:
    """From some rows of all columns to all rows of some columns: (n, ..., O) -> (N, ..., o)."""
    return RowsToColumns(_counts("rows", rows), _counts("columns", columns))(x)


def send(x: Operand, to: int, tag: int = 0) -> Tensor:
    """Send a Tensor to another rank, which calls `recv` of this module with the same tag.

    Parameters
    ----------
    x : Tensor
    to : int
    tag : int

    Returns
    -------
    Tensor ()
        0, whose backward waits for the gradient of x: add it to the loss of this rank, or call
        `backward` on it where there is none.

    Raises
    ------
    ArgumentError
        No other rank.
    """
    return Send(collectives.other_rank("send", "to", to), int(tag))(x)


def recv(
    source: int, shape: Shape, dtype: Any = np.float32, tag: int = 0, *, after: Tensor | None = None
) -> Tensor:
    """The Tensor that another rank sends with that tag; its gradient goes back there.

    Parameters
    ----------
    source : int
    shape, dtype
        What comes.
    tag : int
    after : Tensor, optional
        What comes first, such as that which an earlier `send` returned: its backward comes after
        that of the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        Something else came.
    ArgumentError
        No other rank.
    """
    begin = NOTHING_BEFORE if after is None else after
    source = collectives.other_rank("recv", "source", source)
    return Recv(source, tuple(shape), np.dtype(dtype), int(tag), after is not None)(begin)


def rows_of_ranks(samples: int, op: str = "rows_of_ranks") -> Counts:
    """How many rows each rank has, where this one has so many.

    In a `data_parallel` of a batch that is known; else the ranks ask each other.

    >>> rows_of_ranks(5)
    (5,)
    """
    ranks, known = world(), here.top.of_ranks
    if ranks.size == 1:
        return (samples,)
    if known is None:
        here.top.aside("asks the other ranks how many rows they have")
        return tuple(ranks.all_gather(np.array(samples)).tolist())
    of_each, rest = divmod(samples, known[ranks.rank] or 1)
    if rest or not known[ranks.rank]:
        expected = f"{known[ranks.rank]} rows, this rank's samples, or as many for each sample"
        raise ShapeError(op, "x", expected, samples)
    return tuple(of_each * n for n in known)


# ---- arguments ----------------------------------------------------------------------------------


def _rows(op: str, x: Any, rows: Sequence[int] | None) -> Counts:
    shape = np.shape(x)
    if not shape:
        raise ShapeError(op, "x", "at least one axis", "none", "x.reshape(1)")
    return rows_of_ranks(shape[0], op) if rows is None else _counts("rows", rows)


def _counts(argument: str, counts: Sequence[int]) -> Counts:
    found = tuple(int(n) for n in counts)
    if len(found) != world().size or min(found) < 0:
        expected = f"{world().size} counts, one for a rank"
        raise ShapeError("distributed", argument, expected, found)
    return found


def _dealt(argument: str, total: int, counts: Sequence[int] | None) -> Counts:
    if counts is not None:
        return _counts(argument, counts)
    size = world().size
    ends = [share(total, rank, size) for rank in range(size)]
    return tuple(stop - first for first, stop in ends)


def _linear(op: str, how: str) -> str:
    return one_of(op, "op", how, ("sum", "mean"))
