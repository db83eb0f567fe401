"""What the ranks of a launch say to each other, on arrays; torch.distributed's names.

Each rank calls the same function, with an array of the same shape where nothing else is said; a
rank that does something else is found out, and all raise DistributedError.  Arrays are numpy's, of
any numbers or bools and in any layout; with backend "nccl" also CuPy's.  What comes back is a new
array; in a world of one process it is the array itself.

For Tensors, with gradients: tg.distributed.functions.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DeviceError, DtypeError, ShapeError, unmasked
from tinygraph.cuda.launch import is_cupy
from tinygraph.distributed.joined import world
from tinygraph.distributed.world import World
from tinygraph.engine import Array, Tensor

_OPS = ("sum", "mean", "prod", "min", "max")


def all_reduce(x: Array, op: str = "sum") -> Array:
    """The sum over ranks, element by element; all ranks get the same bits.

    Parameters
    ----------
    x : array of any shape, the same on all ranks
    op : {"sum", "mean", "prod", "min", "max"}
        Of bools, sum and max are `or`, prod and min are `and`.  nan wins over any number.

    Returns
    -------
    array of the same shape and dtype
        Added in a fixed order, ((0 + 1) + (2 + 3)) + ... by rank.

    Raises
    ------
    DistributedError
        Ranks with other shapes, dtypes or ops.
    ArgumentError, DtypeError
        Another op, no numbers, or the mean of integers.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> tg.distributed.all_reduce(np.ones(3))  # in a world of one
    array([1., 1., 1.])
    """
    here = world()
    x = _numbers("all_reduce", x, here)
    return here.all_reduce(x, _reduction("all_reduce", x, op))


def all_gather(x: Array) -> Array:
    """The arrays of all ranks: (...) -> (world size, ...), the same on all ranks.

    >>> import numpy as np, tinygraph as tg
    >>> tg.distributed.all_gather(np.ones(3)).shape
    (1, 3)
    """
    here = world()
    return here.all_gather(_numbers("all_gather", x, here))


def all_gather_rows(x: Array, out: Array | None = None) -> Array:
    """The rows of all ranks, those of rank 0 first: (n, ...) -> (sum of n, ...).

    n may differ from rank to rank, and be 0; the other sizes may not.  With `out`, an array of the
    result's shape and dtype, the rows are written there.
    """
    here = world()
    x = _numbers("all_gather_rows", x, here)
    if not x.ndim:
        raise ShapeError("all_gather_rows", "x", "at least one axis", "none", "x.reshape(1)")
    return here.all_gather_rows(x, out)


def reduce_scatter(parts: Array, op: str = "sum") -> Array:
    """This rank's part of the sum over ranks: (world size, ...) -> (...); `op` as in all_reduce."""
    here = world()
    parts = _parts("reduce_scatter", parts, here)
    return here.reduce_scatter(parts, _reduction("reduce_scatter", parts, op))


def all_to_all(parts: Array) -> Array:
    """Give each rank a part: (world size, ...) -> (world size, ...).

    parts[r] goes to rank r; at r of the result stands what rank r has sent here.
    """
    here = world()
    return here.all_to_all(_parts("all_to_all", parts, here))


def exchange(parts: Sequence[Array]) -> list[Array]:
    """Give each rank an array of any shape and dtype: `all_to_all` of a list of world-size arrays.

    Raises
    ------
    ShapeError
        Not as many arrays as ranks.
    """
    here = world()
    if len(parts) != here.size:
        raise ShapeError("exchange", "parts", f"{here.size} arrays, one for a rank", len(parts))
    return here.exchange([_numbers("exchange", part, here) for part in parts])


def broadcast(x: Array, root: int = 0) -> Array:
    """The array of the rank `root`; the others give one of the same shape and dtype."""
    here = world()
    return here.broadcast(
        _numbers("broadcast", x, here), rank_among("broadcast", "root", root, here)
    )


def broadcast_object(thing: Any, root: int = 0) -> Any:
    """What the rank `root` has, on all ranks: numbers, words, lists, dicts, arrays."""
    here = world()
    return here.broadcast_object(thing, rank_among("broadcast_object", "root", root, here))


def all_gather_object(thing: Any) -> list[Any]:
    """What each rank has, in a list by rank, the same on all ranks."""
    return world().all_gather_object(thing)


def send(x: Array, to: int, tag: int = 0) -> None:
    """Send an array of any shape to another rank, which calls `recv` with the same tag.

    It may wait until the other one does so: two ranks that both send first wait for ever.
    """
    here = world()
    here.send(_numbers("send", x, here), other_rank("send", "to", to, here), tag)


def recv(source: int, tag: int = 0) -> Array:
    """The array that another rank sends with that tag; its shape and dtype come with it."""
    here = world()
    return here.recv(other_rank("recv", "source", source, here), tag)


# ---- arguments --------------------------------------------------------------------------------


def _numbers(op: str, x: Any, here: World) -> Array:
    if isinstance(x, Tensor):
        way_out = f"tg.distributed.functions.{op}, or x.value without a gradient"
        raise ArgumentError(op, "x", "an array", "a Tensor", way_out)
    if is_cupy(x):
        if here.size > 1 and here.name != "NCCL":
            way_out = "tg.distributed.init('nccl') at the start, or x.get()"
            raise DeviceError(op, "x", "an array of the host", "one of a GPU", way_out)
        return x
    array = np.asarray(unmasked(op, "x", x))
    if array.dtype.kind not in "biufc":
        raise DtypeError(op, "x", "numbers or bools", array.dtype, "broadcast_object for others")
    return array


def _parts(op: str, parts: Any, here: World) -> Array:
    array = _numbers(op, parts, here)
    if not array.ndim or len(array) != here.size:
        expected = f"{here.size} parts on axis 0, one for a rank"
        raise ShapeError(op, "parts", expected, f"shape {array.shape}", "exchange(list of arrays)")
    return array


def _reduction(op: str, x: Array, how: str) -> str:
    if how not in _OPS:
        raise ArgumentError(op, "op", "'sum', 'mean', 'prod', 'min' or 'max'", repr(how))
    if how == "mean" and x.dtype.kind not in "fc":
        raise DtypeError(op, "x", "floats, for a mean", x.dtype, "x.astype(np.float32)")
    return how


def rank_among(op: str, argument: str, rank: Any, here: World | None = None) -> int:
    """The number of a rank, or ArgumentError."""
    here = here or world()
    try:
        number = operator.index(rank)
    except TypeError:
        number = -1
    if isinstance(rank, bool) or not 0 <= number < here.size:
        raise ArgumentError(op, argument, f"a rank from 0 to {here.size - 1}", repr(rank))
    return number


def other_rank(op: str, argument: str, rank: Any, here: World | None = None) -> int:
    """The number of a rank that is not this one, or ArgumentError."""
    here = here or world()
    number = rank_among(op, argument, rank, here)
    if number == here.rank:
        raise ArgumentError(op, argument, "another rank", f"{rank}, which is this one")
    return number
