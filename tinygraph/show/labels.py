"""Labels, predictions and class names: checks and counts.

N samples, K classes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError, unmasked
from tinygraph.engine import Array, Tensor

MAX_CLASSES = 1000


def as_array(values: Any) -> Array:
    """The numbers of a Tensor or of anything that numpy takes."""
    return (
        values.numpy()
        if isinstance(values, Tensor)
        else np.asarray(unmasked("show", "values", values))
    )


def class_numbers(op: str, argument: str, values: Any) -> Array:
    """Class numbers (N,) as int64, or an error."""
    numbers = as_array(values)
    if numbers.ndim != 1 or not numbers.size:
        raise ShapeError(
            op,
            argument,
            "one class number for each sample, (N,)",
            f"shape {numbers.shape}",
            "of scores (N, C) take the best: scores.argmax(1)",
        )
    if numbers.dtype.kind not in "iu":
        raise DtypeError(
            op,
            argument,
            "integers",
            numbers.dtype,
            "number the classes 0, 1, ... and give their names as classes=[...]",
        )
    if numbers.min() < 0:
        raise ArgumentError(op, argument, "numbers from 0", int(numbers.min()))
    if numbers.max() >= MAX_CLASSES:
        raise ArgumentError(op, argument, f"numbers below {MAX_CLASSES}", int(numbers.max()))
    return numbers.astype(np.int64)


def checked_pair(
    op: str, labels: Any, predictions: Any, classes: Sequence[Any] | None
) -> tuple[Array, Array, list[str]]:
    """Labels and predictions that belong together, and the names of all classes."""
    truth = class_numbers(op, "labels", labels)
    predicted = class_numbers(op, "predictions", predictions)
    if truth.shape != predicted.shape:
        raise ShapeError(op, "predictions", f"as many as labels, {truth.size}", predicted.size)
    largest = int(max(truth.max(), predicted.max()))
    if classes is None:
        return truth, predicted, [str(k) for k in range(largest + 1)]
    if isinstance(classes, str) or not isinstance(classes, Sequence):
        raise ArgumentError(op, "classes", "a list of names, one for each class", repr(classes))
    if len(classes) <= largest:
        raise ArgumentError(
            op,
            "classes",
            f"a name for each class, at least {largest + 1}",
            len(classes),
            f"the largest class number is {largest}; the first class is 0",
        )
    if len(classes) > MAX_CLASSES:
        raise ArgumentError(op, "classes", f"at most {MAX_CLASSES} names", len(classes))
    return truth, predicted, [str(name) for name in classes]


def confusions(truth: Array, predicted: Array, number: int) -> Array:
    """counts[t, p], (K, K): how many samples of class t were taken for class p."""
    flat = np.bincount(truth * number + predicted, minlength=number * number)
    return flat.reshape(number, number)


def shares(counts: Array) -> Array:
    """Each row of a confusion matrix by its sum; a class without a sample has zeros.

    >>> shares(np.array([[3, 1], [0, 0]])).tolist()
    [[0.75, 0.25], [0.0, 0.0]]
    """
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def class_accuracies(counts: Array) -> list[float | None]:
    """The share of each class's samples that were recognized; None where it has none."""
    totals = counts.sum(axis=1)
    return [float(counts[k, k] / n) if n else None for k, n in enumerate(totals)]


def in_turn(truth: Array, among: Array, most: int) -> Array:
    """At most so many of the samples `among` (N,), one of each class after another; by class.

    >>> in_turn(np.array([0, 0, 0, 1]), np.array([True, True, True, True]), 3).tolist()
    [0, 1, 3]
    """
    found = np.flatnonzero(among)
    found = found[np.argsort(truth[found], kind="stable")]  # by class, else as they come
    _, first, counts = np.unique(truth[found], return_index=True, return_counts=True)
    turn = np.arange(found.size) - np.repeat(first, counts)  # which of its class it is
    return found[np.sort(np.argsort(turn, kind="stable")[:most])]
