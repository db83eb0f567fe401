"""Head: what ranks tell each other of a step before they add gradients up, in one small message.

    of each shard    whether it is there; how many streams of random numbers it took; what its
                     function returned; which leaves have a gradient; which buffers it has changed
    of each rank     whether it has failed

All of it float64, in which counts are exact.  Every rank gets every shard's, and adds in their
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, DistributedError
from tinygraph.distributed.shards import Part
from tinygraph.distributed.tree_sum import share
from tinygraph.distributed.world import World
from tinygraph.engine import Array, Tensor

MOST = 8  # numbers that a function may return
_MEAN, _COUNT, _NONE = 1.0, 2.0, 3.0  # kinds of them; 0: no further one
_THERE, _STREAMS, _IS_TUPLE, _KINDS, _VALUES = 0, 1, 2, 3, 3 + MOST
_FLAGS = _VALUES + MOST

Returned = float | int | None | tuple[float | int | None, ...]


class Found(NamedTuple):
    """What all shards of a batch have found."""

    returned: Returned  # means over the samples, and counts
    streams: int  # of random numbers, that the batch has taken
    reached: list[bool]  # for each leaf, whether it has a gradient
    changed: list[bool]  # for each buffer, whether a shard wrote another value

    def counted_once(self, ranks: int) -> Returned:
        """The results where each rank has counted all samples."""
        several = self.returned if isinstance(self.returned, tuple) else (self.returned,)
        once = tuple(x // ranks if isinstance(x, int) else x for x in several)
        return once if isinstance(self.returned, tuple) else once[0]


class Head:
    """The message of one rank, made anew for each batch."""

    def __init__(self, world: World, shards: int, leaves: int, buffers: int) -> None:
        self._world, self._leaves = world, leaves
        own = range(*share(shards, world.rank, world.size))
        most = -(-shards // world.size)
        self._first = own.start
        self._own = np.zeros(1 + most * (_FLAGS + leaves + buffers))  # the first one: it has failed
        self._shards = self._own[1:].reshape(most, -1)

    def begin(self) -> None:
        """Nothing of any shard."""
        self._own.fill(0)

    def note(
        self,
        part: Part,
        returned: Any,
        streams: int,
        reached: Sequence[bool],
        changed: Sequence[bool],
    ) -> None:
        """What a shard of this rank has found."""
        row = self._shards[part.shard - self._first]
        row[_THERE], row[_STREAMS] = 1, streams
        row[_IS_TUPLE] = isinstance(returned, tuple)
        several = returned if isinstance(returned, tuple) else (returned,)
        if len(several) > MOST:
            raise ArgumentError("data_parallel", "fn", f"at most {MOST} results", len(several))
        for at, each in enumerate(several):
            row[_KINDS + at], row[_VALUES + at] = _number(each, part)
        row[_FLAGS:] = *reached, *changed

    def exchange(self, failure: Exception | None) -> Found:
        """Tell all ranks, and hear from them; an error on all where one has failed."""
        self._own[0] = failure is not None
        heads = self._world.all_gather(self._own)
        failed = np.flatnonzero(heads[:, 0])
        if failed.size:
            first = self._world.failed = int(failed[0])
            why = "" if failure is None else f"{type(failure).__name__}: {failure}"
            why = self._world.broadcast_object(why, first)
            if failure is not None:
                raise failure
            raise DistributedError(f"rank {first} has failed: {why}")
        rows = heads[:, 1:].reshape(-1, self._shards.shape[1])
        rows = rows[rows[:, _THERE] == 1]  # in the order of the shards, for ranks are
        flags = rows[:, _FLAGS:].any(axis=0).tolist()
        return Found(
            _together(rows),
            int(rows[:, _STREAMS].max()),
            flags[: self._leaves],
            flags[self._leaves :],
        )


def _number(value: Any, part: Part) -> tuple[float, float]:
    """Kind and value of a result; a mean counts as its share of the batch."""
    if value is None:
        return _NONE, 0.0
    is_int = isinstance(value, (int, np.integer))
    if isinstance(value, Tensor):
        is_int = value.dtype.kind in "iub"
    elif not is_int and not isinstance(value, (float, np.floating)):
        expected = "numbers, Tensors of one element or None, in a tuple where there are several"
        raise ArgumentError("data_parallel", "what fn returns", expected, type(value).__name__)
    if isinstance(value, Tensor) and value.size != 1:
        expected = "Tensors of one element: means over the samples, or counts"
        raise ArgumentError("data_parallel", "what fn returns", expected, f"shape {value.shape}")
    number = float(value.item() if isinstance(value, Tensor) else value)
    return (_COUNT, number) if is_int else (_MEAN, number * part.weight)


def _together(rows: Array) -> Returned:
    """The results of all shards as those of the batch."""
    found: list[float | int | None] = []
    for at, kind in enumerate(rows[0, _KINDS : _KINDS + MOST].tolist()):
        if kind == 0:
            break
        total = sum(rows[:, _VALUES + at].tolist())
        found.append(None if kind == _NONE else int(total) if kind == _COUNT else total)
    return tuple(found) if rows[0, _IS_TUPLE] else found[0]
