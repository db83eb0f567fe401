"""Fetcher: a batch from its indices, in whichever process it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinygraph.data.collate import collate, default_collate
from tinygraph.data.dataset import Samples, at_epoch, samples_at
from tinygraph.engine import Array

Collate = Callable[[Any], Any]


class Fetcher:
    """Reads samples and makes batches of them: a function of the epoch and the indices alone."""

    def __init__(self, dataset: Any, collate_fn: Collate | None) -> None:
        self.dataset = dataset
        self.collate_fn = collate_fn
        self._epoch: int | None = None
        self._now: Any = None  # the dataset of that epoch

    def batch(self, epoch: int, indices: Array) -> Any:
        """The batch of the samples at `indices`, as they are in an epoch."""
        if epoch != self._epoch:
            self._epoch, self._now = epoch, at_epoch(self.dataset, epoch)
        samples = samples_at(self._now, indices)
        if self.collate_fn not in (None, default_collate):
            return self.collate_fn(list(samples))
        return (
            samples.batch() if isinstance(samples, Samples) else collate(samples, indices.tolist())
        )
