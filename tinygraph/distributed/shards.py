"""Shards: a batch in parts that are computed one by one, so that nobody can tell who computed them.

    batch of N samples, S shards: shard s has the samples N*s//S ... N*(s+1)//S
    W ranks: rank r has the shards S*r//W ... S*(r+1)//W, which lie side by side

Of each shard everything follows from its samples, its place in the batch and the state before the
step: BLAS and plans have one thread, random numbers are those of the whole batch at the place of
the shard, running statistics start from those before the step.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError, GraphError
from tinygraph.distributed.tree_sum import share
from tinygraph.engine import Buffer, Parameter, Runner

MOST_EMPTY = 1024  # shards, where a batch has fewer samples


class Part(NamedTuple):
    """A shard of a batch: the samples first ... stop of so many."""

    shard: int
    first: int
    stop: int
    samples: int

    @property
    def weight(self) -> float:
        """Its share of the batch."""
        return (self.stop - self.first) / self.samples

    def within(self, first: int) -> slice:
        """Where it lies in rows of the batch that begin at `first`."""
        return slice(self.first - first, self.stop - first)


def rows_of(samples: int, shards: int, rank: int, size: int) -> tuple[int, int]:
    """Where the rows of a rank begin and end in a batch: those of its shards.

    >>> [rows_of(10, 4, rank, 3) for rank in range(3)]
    [(0, 2), (2, 5), (5, 10)]
    """
    first, stop = share(shards, rank, size)
    return samples * first // shards, samples * stop // shards


def parts_of(samples: int, shards: int, rank: int = 0, size: int = 1) -> list[Part]:
    """The shards of a rank; one may have no sample.

    >>> [tuple(part) for part in parts_of(10, 4, rank=1, size=2)]
    [(2, 5, 7, 10), (3, 7, 10, 10)]
    """
    own = range(*share(shards, rank, size))
    return [Part(shard, *share(samples, shard, shards), samples) for shard in own]


def require_few(shards: int, samples: int, ranks: int) -> None:
    """ArgumentError for many more shards than samples.  A last batch may have fewer than shards."""
    if shards > max(samples, MOST_EMPTY, 2 * ranks):
        expected = f"at most {samples}, the samples of a batch"
        raise ArgumentError("data_parallel", "shards", expected, shards, "fewer shards")


class Shard(Runner):
    """Stands above everything while one shard of a batch is computed.

    Attributes
    ----------
    first_sample : int
        Where it begins in the batch: random numbers are those of the whole batch.
    samples : int
        How many it has.
    weight : float
        How much a gradient that backward begins with counts: the shard's share of the batch.
    threads : int
        That a plan may have: more would make other sums.
    of_ranks : tuple of int or None
        How many samples each rank has, where a layer needs all ranks for a batch.
    reached : list of Tensor
        The leaves that have a gradient now.
    completed : function of a leaf or None
        Told of each of them.
    """

    threads = 1

    def __init__(
        self,
        part: Part,
        leaves: Container[Any],
        before: int = 0,
        of_ranks: tuple[int, ...] | None = None,
        completed: Callable[[Any], None] | None = None,
        batch: Iterable[Any] = (),
    ) -> None:
        self.first_sample, self.weight = before + part.first, part.weight  # of more than a batch
        self.samples = part.stop - part.first
        arrays = [getattr(each, "value", each) for each in batch]
        self._arrays = [each for each in arrays if hasattr(each, "strides")]
        self._created: list[Any] = []
        self._running: Any = None  # the node whose body runs
        self.leaves, self.of_ranks, self.completed = leaves, of_ranks, completed
        self.reached: list[Any] = []

    def forward(self, node: Any, mem: Any, arrays: list[Any]) -> Any:
        """As below; who draws random numbers in it is known."""
        self._running = node
        return self.below.forward(node, mem, arrays)

    def created(self, leaf: Any) -> None:
        """Of ones, noise and the like: what belongs to samples has a row for each."""
        self._created.append(leaf)
        self.below.created(leaf)

    def draws_for_samples(self) -> bool:
        """Whether what draws was computed from a sample: of a parameter all shards drop the same.

        A leaf that nobody knows is taken for samples where its rows can be dealt out to them.
        """
        waiting, seen, perhaps = [*self._running.inputs], set(), False
        while waiting:
            x = waiting.pop(0)
            if id(x) in seen or isinstance(x, (Parameter, Buffer)):
                continue
            seen.add(id(x))
            if x.inputs:
                waiting[:0] = x.inputs
            elif self._is_of_batch(x):
                return True
            elif any(x is leaf for leaf in self._created):
                perhaps = perhaps or (x.dtype.kind == "f" and x.shape[:1] == (self.samples,))
            else:
                perhaps = perhaps or (len(x.shape) > 0 and x.shape[0] % self.samples == 0)
        return perhaps

    def _is_of_batch(self, x: Any) -> bool:
        return any(_share_memory(x.value, other) for other in self._arrays)

    def complete(self, leaf: Any) -> None:
        """A leaf has its gradient: one that nobody adds up over the shards would be wrong."""
        if leaf not in self.leaves:
            expected = "gradients of the parameters of `model` alone"
            got = f"one of {leaf.name or 'a leaf'} {leaf.shape}"
            way_out = "give data_parallel the module that holds it, or a list of all leaves"
            raise GraphError("data_parallel", "fn", expected, got, way_out)
        self.reached.append(leaf)
        self.below.complete(leaf)
        if self.completed is not None:
            self.completed(leaf)

    def update(self, optimizer: Any) -> None:
        """Not here: a gradient is only that of a shard."""
        way_out = "call optimizer.step() after the function, with the gradients of the batch"
        raise GraphError("data_parallel", "fn", "gradients, and no update", "an update", way_out)


def _share_memory(x: Any, y: Any) -> bool:
    """Whether two arrays of one device may lie in the same memory."""
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return type(x) is type(y) and np.may_share_memory(x, y)
    (x_first, x_size), (y_first, y_size) = _extent(x), _extent(y)
    return x_first < y_first + y_size and y_first < x_first + x_size


def _extent(x: Any) -> tuple[int, int]:
    """Where an array on a GPU begins, and how many bytes it spans."""
    steps = zip(x.shape, x.strides, strict=True)
    span = sum((n - 1) * abs(step) for n, step in steps) + x.itemsize if x.size else 0
    return x.__cuda_array_interface__["data"][0], span
