"""Datasets made of others: a part of one, several in a row, one cut at random."""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, number, whole
from tinygraph.data.dataset import (
    SPLIT_STREAM,
    BatchedDataset,
    Dataset,
    at_epoch,
    permutation,
    sample,
    samples_at,
)
from tinygraph.data.samplers import as_indices, seed_of
from tinygraph.engine import Array, Generator


class Subset(Dataset):
    """The samples of a dataset at some indices, in their order.

    Parameters
    ----------
    dataset : Dataset
        Where it makes batches itself, so does the subset.
    indices : sequence of int

    Raises
    ------
    ArgumentError
        Indices that are no ints, or outside the dataset.

    Examples
    --------
    >>> import tinygraph as tg
    >>> part = tg.data.Subset(["a", "b", "c", "d"], [3, 1])
    >>> len(part), part[0]
    (2, 'd')
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self._given: Sequence[int] | None = indices
        self._places = as_indices("Subset", "indices", indices)
        size = len(dataset)
        outside = self._places[(self._places < -size) | (self._places >= size)]
        if outside.size:
            raise ArgumentError("Subset", "indices", f"ints below {size}", outside[0])

    @property
    def indices(self) -> Sequence[int]:
        """The indices as they were given; those of `random_split` as a list."""
        return self._places.tolist() if self._given is None else self._given

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: Any) -> Any:
        """The sample at an int; many at once, where the dataset takes an array of ints."""
        chosen = self._places[index]
        return self.dataset[chosen if chosen.ndim else int(chosen)]

    def __getitems__(self, indices: Any) -> Any:
        """The samples at these ints, as the dataset gives them."""
        return samples_at(self.dataset, self._places[indices])

    def for_epoch(self, epoch: int) -> Subset:
        """The same part of the dataset of another epoch."""
        other = copy.copy(self)
        other.dataset = at_epoch(self.dataset, epoch)
        return other


class ConcatDataset(Dataset):
    """Several datasets, one after the other.

    Parameters
    ----------
    datasets : sequence of Dataset
        At least one.

    Examples
    --------
    >>> import tinygraph as tg
    >>> both = tg.data.ConcatDataset([["a", "b"], ["c"]])
    >>> len(both), both[2]
    (3, 'c')
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset", "datasets", "at least one", "none")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        """The sample at an int."""
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        which = bisect_right(self.cumulative_sizes, place)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][place - before]

    def for_epoch(self, epoch: int) -> ConcatDataset:
        """The datasets of another epoch, one after the other."""
        return ConcatDataset([at_epoch(dataset, epoch) for dataset in self.datasets])


def each_sample(dataset: Any, indices: Array) -> Iterator[Any]:
    """The samples at these ints, read one by one, or at once where the dataset does that better."""
    while isinstance(dataset, Subset):
        dataset, indices = dataset.dataset, dataset._places[indices]
    if isinstance(dataset, BatchedDataset):
        return iter(dataset.__getitems__(indices))
    return (sample(dataset, index) for index in indices.tolist())


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator | None = None, *, seed: int = 0
) -> list[Subset]:
    """Cut a dataset at random into parts that do not overlap.

    Parameters
    ----------
    dataset : Dataset
    lengths : sequence of int, or of float
        How many samples each part has; or shares that add up to 1, which are rounded down, and what
        is left over goes to the first parts, one each.
    generator : Generator, optional
        Gives the seed.
    seed : int
        Fixes the parts, on any machine and with any version of numpy.

    Returns
    -------
    list of Subset

    Raises
    ------
    ArgumentError
        Lengths that do not add up to the dataset, or to 1.

    Examples
    --------
    >>> import tinygraph as tg
    >>> train, test = tg.data.random_split(range(10), [0.75, 0.25], seed=0)
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (8, 2, True)
    """
    seed = seed_of("random_split", generator, seed)
    counts = _counts(list(lengths), len(dataset))
    order = permutation(len(dataset), seed, SPLIT_STREAM)
    ends = list(accumulate(counts))
    parts = [
        Subset(dataset, order[end - count : end])  # type: ignore[arg-type]
        for end, count in zip(ends, counts, strict=True)
    ]
    for part in parts:
        part._given = None  # a list of Python's ints takes five times the memory
    return parts


def _counts(lengths: list[Any], size: int) -> list[int]:
    """The lengths of the parts, from lengths or shares."""
    if any(isinstance(length, (float, np.floating)) for length in lengths):
        shares = [number("random_split", "lengths", share, 0, 1) for share in lengths]
        if not math.isclose(sum(shares), 1, abs_tol=1e-9):
            raise ArgumentError("random_split", "lengths", "shares that add up to 1", sum(shares))
        counts = [int(size * share) for share in shares]
        for left_over in range(size - sum(counts)):
            counts[left_over % len(counts)] += 1
        return counts
    counts = [whole("random_split", "lengths", length, 0) for length in lengths]
    if sum(counts) != size:
        expected = f"lengths that add up to {size}, the length of the dataset"
        raise ArgumentError("random_split", "lengths", expected, sum(counts), "shares: [0.8, 0.2]")
    return counts
