"""Samplers: in which order an epoch visits the samples of a dataset.

    sampler          one index after the other     3, 0, 4, 1, 2
    batch sampler    a list of them for each batch     [3, 0], [4, 1], [2]

Those of this file are pure functions of their settings and the epoch: `for_epoch(epoch)` gives the
sampler of another one.  A DataLoader asks for each epoch itself.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from tinygraph.base import ArgumentError, unmasked, whole
from tinygraph.base.checks import MAX_WORD, alone
from tinygraph.data.dataset import (
    REPLACEMENT_STREAM,
    SHUFFLE_STREAM,
    WEIGHTED_STREAM,
    at_epoch,
    permutation,
)
from tinygraph.engine import Array, Generator, uniform

Self = TypeVar("Self", bound="Sampler")


class Sampler:
    """The base of samplers: `__iter__` gives the indices, `__len__` their number.

    A DataLoader takes any iterable of ints with a length.  To be resumed, it must give the same
    order for the same epoch.

    Attributes
    ----------
    epoch : int
        The epoch that the order is for; 0 unless `for_epoch` made this sampler.
    """

    epoch = 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.order().tolist())

    def order(self) -> Array:
        """The indices in one array: what a sampler states that does not state `__iter__`."""
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def for_epoch(self: Self, epoch: int) -> Self:
        """The same sampler in another epoch; this one stays as it is."""
        other = copy.copy(self)
        other.epoch = whole(type(self).__name__, "epoch", epoch, 0, MAX_WORD)
        return other


class SequentialSampler(Sampler):
    """The samples from first to last.

    Parameters
    ----------
    data_source : sized

    Examples
    --------
    >>> import tinygraph as tg
    >>> list(tg.data.SequentialSampler(["a", "b", "c"]))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def order(self) -> Array:
        return np.arange(len(self))


class RandomSampler(Sampler):
    """Each sample once, in an order that is another one in each epoch.

    Parameters
    ----------
    data_source : sized
    replacement : bool
        Draw each index from all samples, whatever was drawn before.
    num_samples : int, optional
        How many to draw; by default as many as there are.
    generator : Generator, optional
        Gives the seed.
    seed : int
        Together with the number of the epoch, it fixes the order.

    Raises
    ------
    ArgumentError
        More samples than there are, without replacement; a bad seed.

    Examples
    --------
    >>> import tinygraph as tg
    >>> sampler = tg.data.RandomSampler(range(5), seed=0)
    >>> list(sampler), list(sampler.for_epoch(1))
    ([4, 2, 3, 1, 0], [2, 1, 4, 3, 0])
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.data_source = data_source
        self.replacement = bool(replacement)
        self.seed = seed_of("RandomSampler", generator, seed)
        self.num_samples = num_samples
        if num_samples is not None:
            _count("RandomSampler", num_samples, None if replacement else len(data_source))

    def __len__(self) -> int:
        return len(self.data_source) if self.num_samples is None else self.num_samples

    def order(self) -> Array:
        count = len(self.data_source)
        if not self.replacement:
            return permutation(count, self.seed, SHUFFLE_STREAM, self.epoch)[: len(self)]
        drawn = uniform((len(self),), np.float64, self.seed, REPLACEMENT_STREAM, self.epoch)
        return (drawn * count).astype(np.int64)


class SubsetRandomSampler(Sampler):
    """Some of the samples, each once, in an order that is another one in each epoch.

    Parameters
    ----------
    indices : sequence of int
    generator : Generator, optional
        Gives the seed.
    seed : int
        Together with the number of the epoch, it fixes the order.

    Examples
    --------
    >>> import tinygraph as tg
    >>> sorted(tg.data.SubsetRandomSampler([7, 1, 5], seed=0))
    [1, 5, 7]
    """

    def __init__(self, indices: Any, generator: Generator | None = None, *, seed: int = 0) -> None:
        self.indices = as_indices("SubsetRandomSampler", "indices", indices)
        self.seed = seed_of("SubsetRandomSampler", generator, seed)

    def __len__(self) -> int:
        return len(self.indices)

    def order(self) -> Array:
        return self.indices[permutation(len(self), self.seed, SHUFFLE_STREAM, self.epoch)]


class WeightedRandomSampler(Sampler):
    """Samples drawn in proportion to weights, such as the rare classes as often as the others.

    Parameters
    ----------
    weights : sequence of float
        One for each sample, none negative; their sum need not be 1.
    num_samples : int
        How many to draw in an epoch.
    replacement : bool
        Whether a sample may come again.
    generator : Generator, optional
        Gives the seed.
    seed : int
        Together with the number of the epoch, it fixes what is drawn.

    Raises
    ------
    ArgumentError
        Weights that are negative, not finite or all zero; without replacement, more samples than
        have a weight above zero.

    References
    ----------
    Efraimidis, Spirakis, "Weighted random sampling with a reservoir", Information Processing
    Letters 97, 2006: without replacement.

    Examples
    --------
    >>> import tinygraph as tg
    >>> list(tg.data.WeightedRandomSampler([0, 1, 0, 0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
        *,
        seed: int = 0,
    ) -> None:
        name = "WeightedRandomSampler"
        self.weights = np.array(unmasked(name, "weights", weights), np.float64)
        if (
            self.weights.ndim != 1
            or not np.isfinite(self.weights).all()
            or self.weights.min(initial=0.0) < 0
        ):
            raise ArgumentError(name, "weights", "finite numbers of at least 0", repr(weights))
        positive = int(np.count_nonzero(self.weights))
        if not positive:
            raise ArgumentError(name, "weights", "at least one above 0", "none")
        self.replacement = bool(replacement)
        self.num_samples = _count(name, num_samples, None if replacement else positive)
        self.seed = seed_of(name, generator, seed)

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Array:
        if self.replacement:
            ends = np.cumsum(self.weights)
            return np.searchsorted(ends, self._uniform(len(self)) * ends[-1], side="right")
        with np.errstate(divide="ignore", invalid="ignore"):  # a weight of 0 waits for ever
            waiting = -np.log1p(-self._uniform(len(self.weights))) / self.weights
        return np.argsort(waiting, kind="stable")[: len(self)]

    def _uniform(self, count: int) -> Array:
        return uniform((count,), np.float64, self.seed, WEIGHTED_STREAM, self.epoch)


class BatchSampler(Sampler):
    """Cuts what a sampler gives into batches.

    Parameters
    ----------
    sampler : Sampler
        Or any iterable of ints with a length.
    batch_size : int
    drop_last : bool
        Leave out the last batch where it is smaller.

    Examples
    --------
    >>> import tinygraph as tg
    >>> list(tg.data.BatchSampler(tg.data.SequentialSampler(range(5)), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = whole("BatchSampler", "batch_size", batch_size)
        self.drop_last = bool(drop_last)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        return (indices.tolist() for indices in self.cut())

    def cut(self) -> list[Array]:
        """The batches of an epoch, each as an array of indices."""
        order = _order(at_epoch(self.sampler, self.epoch))
        end = len(order) - len(order) % self.batch_size if self.drop_last else len(order)
        starts = range(0, end, self.batch_size)
        return [order[start : start + self.batch_size] for start in starts]


def samplers_of(
    dataset: Any,
    batch_size: Any,
    shuffle: Any,
    sampler: Any,
    batch_sampler: Any,
    drop_last: Any,
    seed: int,
) -> tuple[Any, Any]:
    """The sampler and the batch sampler that these arguments of a DataLoader ask for.

    There is no sampler where batches are given.
    """
    _require_samples(dataset, sized=sampler is None and batch_sampler is None)
    if batch_sampler is not None:
        given = {"batch_size": batch_size != 1, "shuffle": shuffle, "drop_last": drop_last}
        alone("DataLoader", "batch_sampler", given | {"sampler": sampler is not None})
        return None, _sized("batch_sampler", batch_sampler)
    size = whole("DataLoader", "batch_size", batch_size)
    if sampler is not None:
        alone("DataLoader", "sampler", {"shuffle": shuffle})
        order = _sized("sampler", sampler)
    else:
        order = RandomSampler(dataset, seed=seed) if shuffle else SequentialSampler(dataset)
    return order, BatchSampler(order, size, drop_last)


def _require_samples(dataset: Any, sized: bool) -> None:
    """A dataset whose samples can be asked for by their numbers."""
    absent = [] if hasattr(dataset, "__getitem__") else ["__getitem__"]
    if sized and not hasattr(dataset, "__len__"):
        absent.append("__len__")
    if absent:
        way_out = "read what can only be iterated into a list, or index it: the order is by index"
        raise ArgumentError(
            "DataLoader",
            "dataset",
            "one with __getitem__(index) and __len__()",
            f"a {type(dataset).__name__} without {' and '.join(absent)}",
            way_out,
        )


def _sized(argument: str, sampler: Any) -> Any:
    if hasattr(sampler, "__iter__") and hasattr(sampler, "__len__"):
        return sampler
    way_out = "seed=... by name" if isinstance(sampler, (int, np.integer)) else "pass a list"
    raise ArgumentError("DataLoader", argument, "an iterable with a length", repr(sampler), way_out)


def cut(batch_sampler: Any, epoch: int) -> list[Array]:
    """The batches of an epoch, each as an array of indices, from a batch sampler of any kind."""
    now = at_epoch(batch_sampler, epoch)
    if isinstance(now, BatchSampler) and type(now).__iter__ is BatchSampler.__iter__:
        return now.cut()
    return [as_indices("DataLoader", "batch_sampler", indices) for indices in now]


def _order(sampler: Any) -> Array:
    """What a sampler gives, in one array."""
    if isinstance(sampler, Sampler) and type(sampler).__iter__ is Sampler.__iter__:
        return sampler.order()  # no Python int for each sample
    return as_indices("DataLoader", "sampler", sampler)


def as_indices(op: str, argument: str, indices: Iterable[Any]) -> Array:
    """Ints as an array of int64, or ArgumentError."""
    unmasked(op, argument, indices)
    try:
        found = np.array(indices if isinstance(indices, np.ndarray) else list(indices))
    except (TypeError, ValueError) as error:
        raise ArgumentError(op, argument, "an iterable of ints", f"{indices!r} ({error})") from None
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ArgumentError(op, argument, "an iterable of ints", f"{indices!r:.80}")
    return found.astype(np.int64, copy=False)  # it is a copy already


def seed_of(op: str, generator: Generator | None, seed: int) -> int:
    """The seed that was given: as such, or as that of a Generator."""
    if generator is None:
        return whole(op, "seed", seed, 0, MAX_WORD)
    if seed:
        raise ArgumentError(op, "seed", "none beside a generator, which has one", seed)
    if not isinstance(generator, Generator):
        raise ArgumentError(op, "generator", "a Generator", repr(generator), "seed=...")
    return generator.seed


def _count(op: str, num_samples: Any, most: int | None) -> int:
    """How many samples to draw."""
    return whole(op, "num_samples", num_samples, 1, most)
