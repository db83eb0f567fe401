"""What the compiled step should reach, as ratios to the baseline and as peak memory."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cpu.measure import Point
from benchmarks.cpu.sides import COMPILED, EAGER, FAST, baseline
from benchmarks.cpu.workloads import GRID, LARGEST, W1
from benchmarks.timing import digits

MB = 1e6


@dataclass(frozen=True)
class Aim:
    """One line: what is looked at, which side, and two bounds; "at most" is the harder promise."""

    what: str
    side: str
    at_most: float | None
    aim: float | None


LARGEST_RATIO, MEDIAN_RATIO = "w1, largest ratio of the grid", "w1, median ratio of the grid"
MEMORY = f"{LARGEST}, peak MB"

# At most, and the aim, eager and compiled, with numba and without; ratios to PyTorch as it comes.
NETWORK_AIMS = {
    "lenet5": ((1.5, 1.2), (1.0, 0.7)),
    "resnet18": ((2.4, 1.7), (1.5, 1.0)),
    "srcnn": ((2.5, 1.8), (1.5, 1.0)),
    "gpt": ((1.5, 1.2), (1.1, 0.9)),
    "w2": ((1.2, 1.0), (0.95, 0.8)),
    "w3": ((2.0, 1.5), (1.1, 0.9)),
}

AIMS = (
    *(
        Aim(name, side, *bounds)
        for name, pair in NETWORK_AIMS.items()
        for side, bounds in zip((EAGER, COMPILED, FAST), (*pair, pair[1]), strict=True)
    ),
    Aim(W1, EAGER, 1.5, 1.0),
    Aim(LARGEST_RATIO, COMPILED, 0.45, None),
    Aim(MEDIAN_RATIO, COMPILED, 0.35, 0.22),
    Aim(LARGEST_RATIO, FAST, 0.15, None),
    Aim(MEDIAN_RATIO, FAST, None, 0.08),
    Aim("w4", COMPILED, 0.6, 0.45),
    Aim("w4", EAGER, 2.0, 1.2),
    Aim(MEMORY, EAGER, 1200, None),
    Aim(MEMORY, COMPILED, 400, 150),
)


def reached(aim: Aim, points: Mapping[str, Point]) -> float | None:
    """The figure that an aim is about; None where it was not measured."""
    if aim.what == MEMORY:
        point = points.get(LARGEST)
        found = point.measured.get(aim.side) if point else None
        return found.peak / MB if found else None
    values = _ratios(aim, points)
    if not values:
        return None
    return max(values) if aim.what == LARGEST_RATIO else statistics.median(values)


def _of_grid(aim: Aim) -> bool:
    return aim.what in (LARGEST_RATIO, MEDIAN_RATIO)


def _ratios(aim: Aim, points: Mapping[str, Point]) -> list[float]:
    names = GRID if _of_grid(aim) else (aim.what,)
    ratios = [points[name].ratio(aim.side, baseline(name)) for name in names if name in points]
    return [ratio.median for ratio in ratios if ratio is not None]


def verdict(aim: Aim, value: float | None) -> str:
    """
    >>> verdict(Aim("w2", COMPILED, 0.9, 0.65), 0.7)
    'within "at most", short of the aim'
    """
    if value is None:
        return "not measured"
    if aim.at_most is not None and not value <= aim.at_most:  # NaN has lost too
        return "**falls short**"
    if aim.aim is not None and not value <= aim.aim:
        return (
            'within "at most", short of the aim' if aim.at_most is not None else "short of the aim"
        )
    return "reached"


def rows(points: Mapping[str, Point]) -> Sequence[Sequence[str]]:
    """The table of aims."""
    table = []
    for aim in AIMS:
        value = reached(aim, points)
        bounds = ["" if bound is None else f"{bound:g}" for bound in (aim.at_most, aim.aim)]
        shown = "" if value is None else digits(value)
        count = len(_ratios(aim, points))
        if _of_grid(aim) and 0 < count < len(GRID):
            shown += f" ({count} of {len(GRID)} points)"
        table.append([aim.what, aim.side, shown, *bounds, verdict(aim, value)])
    return table
