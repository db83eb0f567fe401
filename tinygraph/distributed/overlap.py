"""Overlap: gradients are sent bucket by bucket while backward goes on.

    backward of the last shard    layer 4    layer 3    layer 2    layer 1
    messages                             bucket 0          bucket 1      the rest, then wait

Backward completes the parameters of the last layers first, so buckets go from the last parameter to
the first; each is a `Flat`.  All ranks begin them in this order, whatever becomes complete first:
what MPI has been given is matched by order.  The sums have the order of one message, and its bits.

Source: Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB
2020, arXiv:2006.15704.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinygraph.base import GraphError
from tinygraph.distributed.flat import Flat
from tinygraph.distributed.shards import Part
from tinygraph.distributed.world import World


def buckets_of(leaves: Sequence[Any], nbytes: float) -> list[list[Any]]:
    """Leaves from the last to the first, in lists of at most so many bytes, one leaf at least.

    >>> import numpy as np
    >>> a, b, c = np.zeros(1), np.zeros(2), np.zeros(1)
    >>> [[leaf.nbytes for leaf in bucket] for bucket in buckets_of([a, b, c], 24)]
    [[8, 16], [8]]
    """
    found: list[list[Any]] = []
    room = 0.0
    for leaf in reversed(leaves):
        size = leaf.size * leaf.dtype.itemsize
        if not found or size > room:
            found.append([])
            room = nbytes
        found[-1].append(leaf)
        room -= size
    return found


class Overlap:
    """Begins the messages of flats, in their order, as the last shard of a rank completes them."""

    def __init__(self, flats: Sequence[Flat], world: World) -> None:
        self.flats, self.world = flats, world
        self._place = {leaf: at for at, flat in enumerate(flats) for leaf in flat.leaves}
        self._missing: list[set[Any]] = []
        self._part: Part | None = None
        self.begun = 0  # how many messages

    def begin(self) -> None:
        """A new batch."""
        self.begun, self._part = 0, None

    def watch(self, part: Part) -> None:
        """The last shard of this rank is about to be computed."""
        self._part = part
        self._missing = [{*flat.leaves} for flat in self.flats]

    def complete(self, leaf: Any) -> None:
        """A leaf has its gradient of the shard that is computed."""
        at = self._place.get(leaf)
        if self._part is None or at is None:
            return
        if at < self.begun:
            got = f"another gradient of {leaf.name or 'a leaf'} {leaf.shape}, which is on its way"
            expected, way_out = "one backward in a function", "leave bucket_mb out"
            raise GraphError("data_parallel", "bucket_mb", expected, got, way_out)
        self._missing[at].discard(leaf)
        while self.begun < len(self.flats) and self._is_complete(self.begun):
            self.flats[self.begun].put(self._part)
            self.flats[self.begun].start(self.world)
            self.begun += 1
        for flat in self.flats[: self.begun]:
            flat.move_on()

    def _is_complete(self, at: int) -> bool:
        """Running statistics, which have no leaf to wait for, go last."""
        return bool(self.flats[at].leaves) and not self._missing[at]

    def start_all(self) -> None:
        """Begin what is left; where this rank has failed too, for the others wait for it."""
        for flat in self.flats[self.begun :]:
            flat.start(self.world)
        self.begin()

    def settle(self) -> None:
        """After an error: nothing is on its way any more."""
        for flat in self.flats:
            flat.settle()
