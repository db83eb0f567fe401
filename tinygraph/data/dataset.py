"""ArrayDataset: samples and their labels, held in memory.

N samples; inputs (N, ...), labels (N,)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.checks import MAX_WORD, number, whole
from tinygraph.errors import ShapeError
from tinygraph.random import philox
from tinygraph.shapes import Array

SPLITS = ("train", "test")

# Streams that no Generator reaches (it counts up from 0), one for each use.
SPLIT_STREAM = 1 << 63
SHUFFLE_STREAM = SPLIT_STREAM + 1
TRANSFORM_STREAM = SPLIT_STREAM + 2


def permutation(size: int, seed: int, stream: int, step: int = 0) -> Array:
    """The numbers 0 to size - 1 in an order that is a pure function of (seed, stream, step).

    The ranks of random 64-bit words.  numpy's own `permutation` may differ between its versions;
    Philox may not.

    >>> permutation(4, seed=0, stream=SPLIT_STREAM).tolist()
    [0, 2, 3, 1]
    """
    return np.argsort(philox(seed, stream, step).random_raw(size), kind="stable")


class ArrayDataset:
    """Inputs and labels as two arrays of equal length.

    Parameters
    ----------
    inputs : array_like (N, ...)
        One sample for each index of the first axis.
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
        self.inputs = np.asarray(inputs)
        self.labels = np.asarray(labels)
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
            Copies.

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
