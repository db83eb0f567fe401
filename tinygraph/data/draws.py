"""Draws: random numbers that belong to a sample, whoever reads it and when."""

from __future__ import annotations

import numpy as np

from tinygraph.data.dataset import TRANSFORM_STREAM
from tinygraph.engine import philox

_WORD_BITS = 64


class Draws:
    """The random numbers of one sample in one epoch, drawn one after the other.

    The Philox key is (seed, stream of transforms); the counter's high words hold the epoch and the
    sample, so that no two samples share a number.
    """

    def __init__(self, seed: int, epoch: int, sample: int) -> None:
        self._place = (seed, TRANSFORM_STREAM, epoch, sample << _WORD_BITS)
        self._generator: np.random.Philox | None = None

    def word(self) -> int:
        """The next 64 random bits."""
        if self._generator is None:  # many transforms draw nothing
            self._generator = philox(*self._place)
        return int(self._generator.random_raw())

    def integer(self, count: int) -> int:
        """One of 0 ... count - 1, each as likely as the others to within count / 2**64."""
        return (self.word() * count) >> _WORD_BITS

    def uniform(self) -> float:
        """A float64 number in [0, 1)."""
        return (self.word() >> 11) * 2.0**-53
