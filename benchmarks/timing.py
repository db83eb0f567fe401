"""What was timed: rounds in which sides took turns, their medians, and ratios round by round."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

UNSEEN = 1.2  # the wall may be so many times the events before a figure is marked


def digits(value: float) -> str:
    """Three digits that count, without an exponent for large numbers.

    >>> digits(0.01234), digits(12.34), digits(1234.4)
    ('0.0123', '12.3', '1234')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


class Timing(NamedTuple):
    """Seconds of one call: by the events on the GPU, and by the clock on the wall."""

    events: float
    wall: float


@dataclass(frozen=True)
class Times:
    """What one run took in each round."""

    rounds: tuple[Timing, ...]

    @classmethod
    def by_wall(cls, seconds: Iterable[float]) -> Times:
        """Rounds that only the clock on the wall has seen."""
        return cls(tuple(Timing(value, value) for value in seconds))

    @property
    def seconds(self) -> list[float]:
        return [timing.events for timing in self.rounds]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def marked(self) -> bool:
        """Whether the events saw much less than the clock on the wall."""
        wall = statistics.median(timing.wall for timing in self.rounds)
        return wall > UNSEEN * self.median + 20e-6

    def text(self, unit: float = 1e3) -> str:
        """Median and range, in ms by default; * where events and wall disagree.

        >>> Times((Timing(0.002, 0.002), Timing(0.001, 0.001), Timing(0.004, 0.004))).text()
        '2 (1 to 4)'
        """
        low, high = min(self.seconds), max(self.seconds)
        mark = "*" if self.marked else ""
        return f"{digits(self.median * unit)}{mark} ({digits(low * unit)} to {digits(high * unit)})"


@dataclass(frozen=True)
class Ratio:
    """How many times longer the other took, round by round: above 1, ours was faster."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, ours: Times, theirs: Times) -> Ratio:
        pairs = zip(ours.seconds, theirs.seconds, strict=True)
        return cls(tuple(other / own for own, other in pairs))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def text(self) -> str:
        return f"{self.median:.2f} ({min(self.values):.2f} to {max(self.values):.2f})"
