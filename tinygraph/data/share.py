"""Share: which rows of each batch one of several ranks reads.

A batch of N samples is cut into S shards; a rank holds neighbouring ones.  With 4 shards, N = 10:

    shard       | 0 0 | 1 1 1 | 2 2 | 3 3 3 |      rows N*s//S ... N*(s+1)//S
    2 ranks     | 0 0   0 0 0 | 1 1   1 1 1 |      shards S*r//size ... S*(r+1)//size
    3 ranks     | 0 0 | 1 1 1 | 2 2   2 2 2 |

The shards of a batch are the same for any number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import whole
from tinygraph.data.nested import like
from tinygraph.engine import Array, Tensor


class Rows(NamedTuple):
    """Rows `first` ... `stop` of a batch of so many samples."""

    first: int
    stop: int
    samples: int


class Share(NamedTuple):
    """The shards `first` ... `stop` of so many, of every batch."""

    first: int
    stop: int
    shards: int

    @property
    def whole(self) -> bool:
        """Whether these are all shards."""
        return (self.first, self.stop) == (0, self.shards)

    def rows(self, samples: int) -> Rows:
        """Which rows of a batch of so many samples these are.

        >>> Share(1, 4, 4).rows(10)
        Rows(first=2, stop=10, samples=10)
        """
        first, stop = (samples * end // self.shards for end in (self.first, self.stop))
        return Rows(first, stop, samples)

    def read(self, indices: Array) -> Array:
        """The indices that are read of those of a batch: one, where no row is held."""
        first, stop, _ = self.rows(len(indices))
        return indices[first:stop] if first < stop else indices[:1]

    def held(self, batch: Any, samples: int) -> Any:
        """What was read of a batch, without the one sample that only says how it is made."""
        first, stop, _ = self.rows(samples)
        return batch if first < stop or not samples else without_rows(batch)

    def each_held(self, batches: Iterator[Any], cuts: Iterable[Array]) -> Iterator[Any]:
        """What is held of each batch."""
        with closing(batches):  # type: ignore[type-var]  # a generator
            for batch, indices in zip(batches, cuts, strict=False):  # the batches end first
                yield self.held(batch, len(indices))


ALL = Share(0, 1, 1)


def share_of(rank: Any, size: Any, shards: Any) -> Share:
    """The shards that a rank holds."""
    count = whole("DataLoader.part", "size", size)
    place = whole("DataLoader.part", "rank", rank, 0, count - 1)
    cut = count if shards is None else whole("DataLoader.part", "shards", shards)
    return Share(cut * place // count, cut * (place + 1) // count, cut)


def without_rows(batch: Any) -> Any:
    """The same nest with no rows in its arrays and Tensors; lists of texts are empty.

    >>> without_rows({"x": np.zeros((2, 3)), "names": ["a", "b"]})
    {'x': array([], shape=(0, 3), dtype=float64), 'names': []}
    """
    if isinstance(batch, Tensor):
        none = batch[:0] if batch.ndim else batch
        return none if batch.requires_grad else none.detach()
    if isinstance(batch, np.ndarray):
        return batch[:0] if batch.ndim else batch
    if isinstance(batch, dict):
        return {key: without_rows(part) for key, part in batch.items()}
    if isinstance(batch, list) and all(isinstance(part, (str, bytes)) for part in batch):
        return []
    if isinstance(batch, (tuple, list)):
        return like(batch, [without_rows(part) for part in batch])
    return batch
