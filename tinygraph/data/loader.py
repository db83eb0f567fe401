"""DataLoader: a dataset cut into batches, in an order that can be repeated.

The order of an epoch is a pure function of (seed, epoch): no state is carried from batch to batch,
so that a run can be taken up again in any epoch.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from tinygraph.data.dataset import SHUFFLE_STREAM, permutation, require_seed
from tinygraph.errors import ArgumentError, explain
from tinygraph.shapes import Array


class Dataset(Protocol):
    """What a DataLoader needs: a length, and (inputs, labels) at an array of ints."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> tuple[Any, Any]: ...


class DataLoader:
    """Batches of a dataset.  Iterating goes through one epoch; iterating again, through the next.

    Parameters
    ----------
    dataset : ArrayDataset
        Or anything with a length that gives (inputs, labels) at an array of ints.
    batch_size : int
        Samples in a batch; the last one may be smaller.
    shuffle : bool
        Whether each epoch has an order of its own.
    seed : int
        Together with the number of the epoch, it fixes the order.
    drop_last : bool
        Leave out the last batch where it is smaller.

    Attributes
    ----------
    epoch : int
        The number of the next epoch to be iterated over; may be assigned.

    Raises
    ------
    ArgumentError
        A batch size below 1, or a bad seed.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> data = tg.data.ArrayDataset(np.arange(5.0), np.arange(5))
    >>> loader = tg.data.DataLoader(data, batch_size=2)
    >>> [labels.tolist() for _, labels in loader]
    [[0, 1], [2, 3], [4]]
    >>> len(loader), loader.epoch
    (3, 1)
    """

    def __init__(
        self, dataset: Dataset, batch_size: int = 1, shuffle: bool = False, seed: int = 0,
        drop_last: bool = False,
    ) -> None:  # fmt: skip
        try:
            self.batch_size = operator.index(batch_size)
        except TypeError:
            self.batch_size = 0
        if self.batch_size < 1:
            raise ArgumentError(
                explain("DataLoader", "batch_size", "an int of at least 1", repr(batch_size))
            )
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = require_seed("DataLoader", seed)
        self.drop_last = drop_last
        self.epoch = 0

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def order(self, epoch: int) -> Array:
        """The order in which an epoch visits the samples."""
        if self.shuffle:
            return permutation(len(self.dataset), self.seed, SHUFFLE_STREAM, epoch)
        return np.arange(len(self.dataset))

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        order = self.order(self.epoch)
        self.epoch += 1
        return self._batches(order)

    def _batches(self, order: Array) -> Iterator[tuple[Array, Array]]:
        for batch in range(len(self)):
            start = batch * self.batch_size
            yield self.dataset[order[start : start + self.batch_size]]
