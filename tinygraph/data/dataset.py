"""Datasets: what a DataLoader reads samples from, and the two that hold them in memory.

    Dataset           one sample at an int
    BatchedDataset    also many at once, at a slice or an array of ints: ArrayDataset, TensorDataset

N samples; inputs (N, ...), labels (N,)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, number, unmasked, whole
from tinygraph.base.checks import MAX_WORD
from tinygraph.data.nested import parts
from tinygraph.engine import Array, as_tensor, philox

SPLITS = ("train", "test")

# Streams that no Generator reaches (it counts up from 0), one for each use.
SPLIT_STREAM = 1 << 63
SHUFFLE_STREAM = SPLIT_STREAM + 1
TRANSFORM_STREAM = SPLIT_STREAM + 2
REPLACEMENT_STREAM = SPLIT_STREAM + 3
WEIGHTED_STREAM = SPLIT_STREAM + 4
WORKER_STREAM = SPLIT_STREAM + 5


def permutation(size: int, seed: int, stream: int, step: int = 0) -> Array:
    """The numbers 0 to size - 1 in an order that is a pure function of (seed, stream, step).

    The ranks of random 64-bit words, equal ones in the order in which they were drawn.  numpy's own
    `permutation` may differ between its versions; Philox may not.

    >>> permutation(4, seed=0, stream=SPLIT_STREAM).tolist()
    [0, 2, 3, 1]
    """
    words = philox(seed, stream, step).random_raw(size)
    order = np.argsort(words)  # faster than a stable sort, whose order it is unless words are equal
    words.sort()
    if (words[1:] == words[:-1]).any():
        order = np.argsort(philox(seed, stream, step).random_raw(size), kind="stable")
    return order


def at_epoch(data: Any, epoch: int) -> Any:
    """A dataset or sampler as it is in an epoch: what its `for_epoch(epoch)` returns, if any."""
    for_epoch = getattr(data, "for_epoch", None)
    return data if for_epoch is None else for_epoch(epoch)


def chosen(index: Any, size: int) -> Array:
    """The places, from 0 on, of what an int, a slice or an array of ints or bools asks for.

    What `np.arange(size)[index]` gives, without that array where it is not needed.

    >>> chosen(-1, 5), chosen([0, -2], 5), chosen(slice(1, None, 2), 5)
    (array(4), array([0, 3]), array([1, 3]))
    """
    if isinstance(index, slice):
        return np.arange(*index.indices(size))
    places = np.asarray(unmasked("dataset", "index", index))
    if places.dtype.kind not in "iu":
        return np.asarray(np.arange(size)[index])
    outside = places[(places < -size) | (places >= size)]
    if outside.size:
        raise IndexError(f"sample {outside.flat[0]} of {size}")
    places = places.astype(np.int64)
    return np.asarray(np.where(places < 0, places + size, places))


def sample(dataset: Any, index: int) -> Any:
    """One sample; an error says which one it is of."""
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"at sample {index}, {type(dataset).__name__}")
        raise


def samples_at(dataset: Any, indices: Array) -> list[Any] | Samples:
    """As many samples as there are indices."""
    if isinstance(dataset, BatchedDataset):
        return dataset.__getitems__(indices)
    many = getattr(dataset, "__getitems__", None)
    if many is None:
        return [sample(dataset, index) for index in indices.tolist()]
    samples = many(indices.tolist())
    name = type(dataset).__name__
    if not isinstance(samples, (list, Samples)):
        got = f"a {type(samples).__name__}"
        way_out = "derive it from tg.data.BatchedDataset, whose __getitem__ gives whole batches"
        raise DtypeError(name, "__getitems__", "a list of samples", got, way_out)
    if len(samples) != len(indices):
        raise wrong_length(name, "__getitems__", len(indices), len(samples))
    return samples


def wrong_length(name: str, method: str, count: int, got: Any) -> ShapeError:
    """The error of a dataset that gives another number of samples than it was asked for."""
    way_out = "give a sample for each index"
    return ShapeError(name, method, f"{count} samples, one for each index", got, way_out)


class Dataset:
    """The base of datasets: `__getitem__(index)` gives the sample at an int, `__len__` their count.

    A `DataLoader` takes anything that has these two, of whatever class.  It looks for two more:

    - `__getitems__(indices)` gives many samples at once, as a list.
    - `for_epoch(epoch)` gives the dataset of another epoch, where samples differ from one to the
      next.

    Examples
    --------
    >>> import tinygraph as tg
    >>> class Squares(tg.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, index):
    ...         return {"x": index, "y": index**2}
    >>> [batch] = tg.data.DataLoader(Squares(), batch_size=4)
    >>> batch["y"]
    Tensor([0, 1, 4, 9], dtype=int64)
    """

    if TYPE_CHECKING:  # there is no length that could stand in for one that is not stated

        def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(index)")


class BatchedDataset(Dataset):
    """The base of datasets whose `__getitem__` takes an array of ints too, and gives a whole batch.

    A `DataLoader` hands such a batch out as it is: nothing is collated.

    Examples
    --------
    >>> import numpy as np, tinygraph as tg
    >>> class Table(tg.data.BatchedDataset):
    ...     rows = np.arange(8.0).reshape(4, 2)
    ...
    ...     def __len__(self):
    ...         return len(self.rows)
    ...
    ...     def __getitem__(self, index):
    ...         return {"row": self.rows[index]}
    >>> [batch] = tg.data.DataLoader(Table(), batch_size=4)
    >>> batch["row"].shape
    (4, 2)
    """

    def __getitems__(self, indices: Any) -> Samples:
        """The samples at these ints: one by one, or all in one batch."""
        return Samples(self, indices)


class Samples:
    """Samples of a BatchedDataset that are still to be read: one by one, or in one batch."""

    def __init__(self, dataset: Any, indices: Any) -> None:
        self.dataset = dataset
        self.indices = np.asarray(unmasked("dataset", "indices", indices), np.int64)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Any]:
        return (sample(self.dataset, index) for index in self.indices.tolist())

    def batch(self) -> Any:
        """All of them, as the dataset puts them together."""
        batch = self.dataset[self.indices]
        length = self.indices.shape
        for part in parts(batch):
            if part.shape[:1] != length:
                name, got = type(self.dataset).__name__, f"shape {part.shape}"
                raise wrong_length(name, "__getitem__", len(self), got)
        return batch


class ArrayDataset(BatchedDataset):
    """Inputs and labels as two arrays of equal length.

    Parameters
    ----------
    inputs : array_like (N, ...)
        One sample for each index of the first axis.  What `np.load(path, mmap_mode="r")` gives
        stays in its file; of each batch its rows are read.
    labels : array_like (N, ...)
        What belongs to each sample.
    name : str
        Shown in messages.
    classes : sequence of str, optional
        The name of each class number.
    notes : str
        Where the samples come from, where that may differ from one folder of files to another.

    Raises
    ------
    ShapeError
        The lengths differ, or an array has no axis.

    Examples
    --------
    >>> import tinygraph as tg
    >>> data = tg.data.ArrayDataset([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    >>> data[1]
    (array([2.]), np.int64(1))
    >>> train, held_out = data.split(0.75, seed=0)
    >>> len(train), len(held_out)
    (3, 1)
    """

    def __init__(
        self,
        inputs: Any,
        labels: Any,
        name: str = "",
        classes: Sequence[str] | None = None,
        notes: str = "",
    ) -> None:
        self.inputs = np.asarray(unmasked("ArrayDataset", "inputs", inputs))
        self.labels = np.asarray(unmasked("ArrayDataset", "labels", labels))
        self.name = name
        self.classes = None if classes is None else tuple(classes)
        self.notes = notes
        for argument, array in (("inputs", self.inputs), ("labels", self.labels)):
            if not array.ndim:
                raise ShapeError("ArrayDataset", argument, "at least one axis", "none")
        if len(self.inputs) != len(self.labels):
            raise ShapeError(
                "ArrayDataset",
                "labels",
                f"{len(self.inputs)}, one for each sample",
                len(self.labels),
                "pass inputs and labels of the same samples",
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        """(inputs, labels) at an int, a slice or an array of ints."""
        return self.inputs[index], self.labels[index]

    def split(self, fraction: float, seed: int = 0) -> tuple[ArrayDataset, ArrayDataset]:
        """Cut into two datasets at random: round(fraction * N) samples, and the others.

        Parameters
        ----------
        fraction : float
            From 0 to 1: the share of the first dataset.
        seed : int
            Fixes the permutation, on any machine and with any version of numpy.

        Returns
        -------
        (ArrayDataset, ArrayDataset)
            Copies in memory, also of arrays that lie in files; `random_split` copies nothing.

        Raises
        ------
        ArgumentError
            A fraction outside 0 to 1, or a bad seed.
        """
        first = round(number("split", "fraction", fraction, 0, 1) * len(self))
        order = permutation(len(self), whole("split", "seed", seed, 0, MAX_WORD), SPLIT_STREAM)
        return self._take(order[:first]), self._take(order[first:])

    def _take(self, index: Array) -> ArrayDataset:
        inputs, labels = self.inputs[index], self.labels[index]
        return ArrayDataset(inputs, labels, self.name, self.classes, self.notes)

    def __repr__(self) -> str:
        shape, dtype = self.inputs.shape[1:], self.inputs.dtype
        return f"ArrayDataset({self.name or 'unnamed'}: {len(self)} samples of {dtype} {shape})"


class TensorDataset(BatchedDataset):
    """Tensors of equal length: sample i is the tuple of their elements i.

    Parameters
    ----------
    *tensors : Tensor or array_like (N, ...)
        Arrays become Tensors.

    Raises
    ------
    ShapeError
        The lengths differ, or a Tensor has no axis.
    ArgumentError
        No Tensor.

    Examples
    --------
    >>> import tinygraph as tg
    >>> data = tg.data.TensorDataset(tg.Tensor([[1.0], [2.0], [3.0]]), tg.tensor([0, 1, 0]))
    >>> len(data), data[1]
    (3, (Tensor([2.], dtype=float32), Tensor(1, dtype=int64)))
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ArgumentError("TensorDataset", "tensors", "at least one", "none")
        self.tensors = tuple([as_tensor(tensor) for tensor in tensors])
        for place, tensor in enumerate(self.tensors):
            if not tensor.ndim:
                raise ShapeError("TensorDataset", f"tensors[{place}]", "at least one axis", "none")
            if len(tensor) != len(self.tensors[0]):
                raise ShapeError(
                    "TensorDataset",
                    f"tensors[{place}]",
                    f"{len(self.tensors[0])} samples, as tensors[0] has",
                    len(tensor),
                )

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        """The elements at an int, a slice or an array of ints."""
        return tuple([t[index] if t.requires_grad else t[index].detach() for t in self.tensors])

    def __repr__(self) -> str:
        parts = ", ".join(f"{tensor.dtype} {tensor.shape[1:]}" for tensor in self.tensors)
        return f"TensorDataset({len(self)} samples of {parts})"
