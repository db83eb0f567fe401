"""Metrics: how good predictions are, as plain numbers.

N samples, C classes; logits (N, C, D...), labels (N, D...)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinygraph.base import ShapeError, unmasked


def correct(logits: Any, labels: Any) -> int:
    """How many labels have the largest logit; of equal logits the first counts.

    >>> correct([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]], [1, 1, 0])
    2
    """
    scores = np.asarray(unmasked("accuracy", "logits", logits))
    classes = np.asarray(unmasked("accuracy", "labels", labels))
    if scores.ndim < 2 or (scores.shape[0], *scores.shape[2:]) != classes.shape:
        raise ShapeError(
            "accuracy",
            "labels",
            "one integer for each row of logits (N, C, ...)",
            f"labels {classes.shape} for logits {scores.shape}",
        )
    return int(np.count_nonzero(scores.argmax(axis=1) == classes))


def accuracy(logits: Any, labels: Any) -> float:
    """The share of labels that have the largest logit; NaN where there is no label.

    Parameters
    ----------
    logits : array_like (N, C) or (N, C, D...)
        Scores, or probabilities.
    labels : array_like of int (N,) or (N, D...)
        Class numbers.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ShapeError
        The labels do not fit the logits.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.training.accuracy([[0.1, 0.9], [0.8, 0.2]], [1, 1])
    0.5
    """
    size = np.size(labels)
    return correct(logits, labels) / size if size else float("nan")


def best_of(best: dict[str, Any] | None, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The better of the best epoch so far and another one, by what was measured on held-out data.

    Of equal ones the first; the same object where it stays.

    >>> best_of({"epoch": 1, "validation_loss": 0.5}, {"epoch": 2, "validation_loss": 0.25})
    {'epoch': 2, 'validation_loss': 0.25}
    """
    name = "validation_accuracy" if "validation_accuracy" in row else "validation_loss"
    value = row.get(name, math.nan)
    if not math.isfinite(value):
        return best
    sign = 1 if name == "validation_accuracy" else -1
    if best is None or sign * value > sign * best[name]:
        return {"epoch": row["epoch"], name: value}
    return best
