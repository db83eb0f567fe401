"""Every element of every input against its slope; of large inputs, drawn ones and directions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tinygraph.errors import ArgumentError
from tinygraph.random import philox
from tinygraph.shapes import Array
from tinygraph.testing.gradcheck_differences import Slope, slope_along
from tinygraph.testing.gradcheck_function import PointFunction
from tinygraph.testing.report import Mismatch

DIRECTIONS = 4  # through all elements of an input that is too large to be checked one by one
MOST_JACOBIAN = 4_000_000  # numbers: more are not kept


@dataclass
class Comparison:
    """What was found, by position of the input; elements that were not compared are NaN.

    `numeric` are slopes, `terms` the sums of absolute terms, `wrong` and `masked` are bool, and
    `jacobian` has a row for each compared element, in the order of `rows` (flat indices).
    """

    numeric: dict[int, Array] = field(default_factory=dict)
    terms: dict[int, Array] = field(default_factory=dict)
    wrong_at: dict[int, Array] = field(default_factory=dict)
    masked: dict[int, Array] = field(default_factory=dict)
    rows: dict[int, list[int]] = field(default_factory=dict)
    jacobian: dict[int, list[Array]] = field(default_factory=dict)
    worst: Mismatch | None = None
    checked: int = 0
    kinks: int = 0

    @property
    def wrong(self) -> bool:
        return self.worst is not None and self.worst.error > 1

    def add_input(self, position: int, shape: tuple[int, ...]) -> None:
        self.numeric[position] = np.full(shape, np.nan)
        self.terms[position] = np.full(shape, np.nan)
        self.wrong_at[position] = np.zeros(shape, bool)
        self.masked[position] = np.zeros(shape, bool)
        self.rows[position], self.jacobian[position] = [], []

    def add(self, position: int, index: int, slope: Slope, analytic: float) -> None:
        """Note the slope at one element."""
        error = abs(analytic - slope.numeric) / max(slope.tolerance, np.finfo(np.float64).tiny)
        error = error if np.isfinite(error) else np.inf
        shape = self.numeric[position].shape
        element = tuple(int(i) for i in np.unravel_index(index, shape))
        if slope.kinked:
            self.kinks += 1
            self.masked[position][element] = True
            return
        self.checked += 1
        self.numeric[position][element] = slope.numeric
        self.wrong_at[position][element] = error > 1
        if self.worst is None or error > self.worst.error:
            self.worst = Mismatch(position, element, analytic, slope.numeric, error)


def compare(
    function: PointFunction,
    analytic: list[Array | None],
    upstream: Array,
    seed: int,
    max_elements: int,
) -> Comparison:
    """Difference the function along elements and directions of each input in `wrt`."""
    found = Comparison()
    rng = np.random.Generator(philox(seed, 2))
    center = function.value()
    for position in function.wrt:
        found.add_input(position, function.arrays[position].shape)
        lines = _Lines(function, position, center, upstream, np.asarray(analytic[position]))
        size = lines.array.size
        elements = list(range(size))
        if size > max_elements:
            drawn = rng.choice(size - 2, max(max_elements // 4, 1), replace=False) + 1
            elements = [0, *sorted(int(i) for i in drawn), size - 1]
        for index in elements:
            _add_element(found, lines, position, index)
        if size > max_elements:
            for _ in range(DIRECTIONS):
                index = lines.wrong_element(rng.standard_normal(size))
                if index >= 0 and index not in found.rows[position]:
                    _add_element(found, lines, position, index)
    return found


def _add_element(found: Comparison, lines: _Lines, position: int, index: int) -> None:
    analytic = float(lines.analytic.reshape(-1)[index])
    slope = lines.element(index)
    found.add(position, index, slope, analytic)
    element = np.unravel_index(index, lines.array.shape)
    with np.errstate(all="ignore"):
        found.terms[position][element] = np.abs(lines.upstream) @ np.abs(slope.of_outputs)
    rows = found.jacobian[position]
    if (len(rows) + 1) * lines.center.size <= MOST_JACOBIAN:
        rows.append(slope.of_outputs)
        found.rows[position].append(index)


class _Lines:
    """Straight lines through the point along which one input moves."""

    def __init__(
        self, function: PointFunction, position: int, center: Array, upstream: Array,
        analytic: Array,
    ) -> None:  # fmt: skip
        self.function, self.position = function, position
        self.center, self.upstream, self.analytic = center, upstream, analytic
        self.array = function.arrays[position]
        finite = np.abs(self.array[np.isfinite(self.array)])
        self.largest = float(np.max(finite, initial=1.0))
        self.arrays = list(function.arrays)
        self.arrays[position] = self.array.copy()

    def _value(self) -> Array:
        """The outputs, or NaN where a step leaves what the op takes: a probability above 1."""
        try:
            return self.function.value(self.arrays)
        except ArgumentError:
            return np.full(self.center.shape, np.nan)

    def element(self, index: int) -> Slope:
        """The slope along one element."""
        moved = self.arrays[self.position].reshape(-1)
        x = float(moved[index])

        def line(t: float) -> Array:
            moved[index] = x + t
            value = self._value()
            moved[index] = x
            return value

        analytic = float(self.analytic.reshape(-1)[index])
        return slope_along(line, self.center, self.upstream, analytic, x, self.largest)

    def wrong_element(self, direction: Array) -> int:
        """The flat index of an element whose slope is wrong along a direction, or -1.

        A direction with a wrong slope is cut into halves, one of which is wrong too.
        """
        low, high = 0, direction.size
        if not self._wrong(direction, low, high):
            return -1
        while high - low > 1:
            middle = (low + high) // 2
            if self._wrong(direction, low, middle):
                high = middle
            elif self._wrong(direction, middle, high):
                low = middle
            else:
                return -1  # each half is within its tolerance, or crosses kinks
        return low

    def _wrong(self, direction: Array, low: int, high: int) -> bool:
        along = np.zeros(direction.size)
        along[low:high] = direction[low:high]
        moved, base = self.arrays[self.position].reshape(-1), self.array.reshape(-1)

        def line(t: float) -> Array:
            moved[...] = base + t * along
            value = self._value()
            moved[...] = base
            return value

        analytic = float(self.analytic.reshape(-1) @ along)
        slope = slope_along(line, self.center, self.upstream, analytic, 1.0, self.largest)
        return not slope.kinked and abs(analytic - slope.numeric) > slope.tolerance
