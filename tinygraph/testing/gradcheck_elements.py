"""Every element of every input against its slope; of large inputs, drawn ones and directions.

Slopes are taken by five points in float64; some elements have none to compare with.

    D(h) = (f(x + h) - f(x - h)) / 2h            central difference, right to h^2
    S(h) = (f(x + h) - 2 f(x) + f(x - h)) / h    forward slope minus backward slope

    slope = (4 D(h/2) - D(h)) / 3                the five points x, x +- h/2, x +- h: right to h^4
    doubt = max(|S(h) - 2 S(h/2)|, 2 |D(h) - D(h/2)|)

Where f is smooth S(h) = h f'' + O(h^3), so that the doubt vanishes as h^2.  At a kink S keeps its
size while h is halved, and a kink nearby shows in D; the error of the slope is never larger than
the doubt.  An element whose doubt stays large for every step sits on a kink and is left out, unless
backward agrees with the slope anyway: abs has the slope 0 at 0 by all conventions.

Source: Abramowitz, Stegun, "Handbook of Mathematical Functions", 25.3.6 (five points); the rule for
kinks is Richardson's: a step and its half must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tinygraph.errors import ArgumentError
from tinygraph.random import philox
from tinygraph.shapes import Array
from tinygraph.testing.gradcheck_function import PointFunction
from tinygraph.testing.report import Mismatch

STEPS = (1e-3, 3e-5, 1e-6)  # relative to max(1, |x|); the next one where a step is in doubt
TOLERANCE = 1e-6  # relative to the derivative
CANCELLATION = 1e-9  # relative to the terms that a derivative is the sum of
KINK = 0.01  # a doubt of more than this part of the one-sided slopes is a kink
ROUNDING = 64 * np.finfo(np.float64).eps  # of an output, before it is divided by the step


class Slope(NamedTuple):
    """The derivative of sum(upstream * f) along one line, and how far it can be trusted."""

    numeric: float
    tolerance: float
    kinked: bool  # no step gives a slope that can be compared
    of_outputs: Array  # the derivative of each output element: a row of the Jacobian, transposed


def slope_along(
    line: Callable[[float], Array],
    center: Array,
    upstream: Array,
    analytic: float,
    x: float = 1.0,
    largest: float = 1.0,
) -> Slope:
    """The slope of `line` at 0, with the largest step that is not in doubt.

    Parameters
    ----------
    line : callable
        t -> the outputs, flat, with the inputs moved by t.
    center : array
        line(0).
    upstream : array
        Random weights of the outputs.
    analytic : float
        What backward says.  A slope that agrees within its tolerance needs no smaller step.
    x : float
        What the steps are relative to, where it is above 1.
    largest : float
        The largest number that the function handles: its rounding may show in any output.
    """
    best = None
    for step in STEPS:
        h = step * max(1.0, abs(x))
        slope, doubt = _five_points(line, center, upstream, h, max(1.0, largest))
        known = [abs(v) for v in (analytic, slope.numeric) if np.isfinite(v)]
        tolerance = slope.tolerance + TOLERANCE * max(known, default=0.0)
        error = abs(analytic - slope.numeric)
        # A doubt that could explain the difference says nothing against backward.
        rough = not np.isfinite(slope.numeric) or error <= 10 * doubt
        if not np.isfinite(analytic) and not np.isfinite(center).all():
            rough = True  # no slope where the function itself is inf or NaN
        kinked = not error <= tolerance and (slope.kinked or rough)
        slope = slope._replace(tolerance=tolerance, kinked=bool(kinked))
        if not slope.kinked:
            return slope
        if best is None or not np.isfinite(best.numeric):
            best = slope
    return best if best is not None else slope


def _five_points(
    line: Callable[[float], Array], center: Array, upstream: Array, h: float, largest: float
) -> tuple[Slope, float]:
    right, left = line(h), line(-h)
    right_half, left_half = line(h / 2), line(-h / 2)
    with np.errstate(all="ignore"):
        whole = (right - left) / (2 * h)
        half = (right_half - left_half) / h
        bend = (right - 2 * center + left) / h
        bend_half = (right_half - 2 * center + left_half) / (h / 2)
        outputs = (4 * half - whole) / 3
        doubts = np.maximum(np.abs(bend - 2 * bend_half), 2 * np.abs(whole - half))
        # An output that does not move at all has no part in it, even if it is inf or NaN.
        still = (right == left) & (right_half == left_half) & (right == center)
        still |= np.isnan(center) & np.isnan(right) & np.isnan(left)
        outputs[still] = doubts[still] = 0
        weight = np.abs(upstream)
        numeric = float(outputs @ upstream)
        magnitude = np.where(np.isfinite(center), np.abs(center), 0) + largest
        rounding = np.where(still, 0, ROUNDING * magnitude / h)
        terms = float(weight @ np.abs(outputs))
        tolerance = CANCELLATION * terms + float(weight @ rounding)
        one_sided = np.abs(whole) + np.abs(bend) / 2
        kinks = (doubts > KINK * one_sided + rounding) & (weight * doubts > tolerance)
        doubt = float(weight @ doubts)
    return Slope(numeric, tolerance, bool(kinks.any()), outputs), doubt


# ---- elements and directions of all inputs -------------------------------------------------------

MOVES, MOVED_BY = 3, 1e-2  # points nearby at which a doubtful element is looked at again
MOST_HIDDEN = 16  # elements that may be wrong for a kink that cannot be seen
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
    mismatches: list[Mismatch] = field(default_factory=list)
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
        mismatch = Mismatch(position, element, analytic, slope.numeric, error)
        if error > 1:
            self.mismatches.append(mismatch)
        if self.worst is None or error > self.worst.error:
            self.worst = mismatch

    def leave_out_mismatches(self) -> None:
        """They sit on kinks after all."""
        for mismatch in self.mismatches:
            self.numeric[mismatch.input][mismatch.element] = np.nan
            self.wrong_at[mismatch.input][mismatch.element] = False
            self.masked[mismatch.input][mismatch.element] = True
        self.kinks += len(self.mismatches)
        self.checked -= len(self.mismatches)
        self.mismatches, self.worst = [], None


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


def hidden_kinks(
    function: PointFunction, upstream: Array, comparison: Comparison, seed: int
) -> bool:
    """Whether all wrong elements sit on kinks that cannot be seen.

    Two ties may cancel: max(x, c) - max(c, x) is 0 everywhere, without a kink; yet at a tie
    backward passes the gradient to the first operand of each, which gives 1.  So where there are
    other kinks, wrong elements are looked at again from points nearby, at which nothing ties: a
    backward that is wrong is wrong there as well.
    """
    if not comparison.kinks or len(comparison.mismatches) > MOST_HIDDEN:
        return False
    rng = np.random.Generator(philox(seed, 3))
    compared = dict.fromkeys(range(len(comparison.mismatches)), 0)
    for _ in range(MOVES):
        arrays = list(function.arrays)
        for i in function.wrt:
            arrays[i] = arrays[i] + MOVED_BY * rng.standard_normal(arrays[i].shape)
        moved = PointFunction(function.fn, arrays, function.wrt, function.device)
        moved.generator = function.generator
        try:
            analytic, center = moved.vjp(upstream), moved.value()
        except ArgumentError:  # beyond what the op takes
            return False
        for which, mismatch in enumerate(comparison.mismatches):
            gradient = np.asarray(analytic[mismatch.input])
            lines = _Lines(moved, mismatch.input, center, upstream, gradient)
            slope = lines.element(int(np.ravel_multi_index(mismatch.element, gradient.shape)))
            if slope.kinked:
                continue
            compared[which] += 1
            if not abs(gradient[mismatch.element] - slope.numeric) <= slope.tolerance:
                return False
    return all(count >= MOVES - 1 for count in compared.values())


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
        self,
        function: PointFunction,
        position: int,
        center: Array,
        upstream: Array,
        analytic: Array,
    ) -> None:
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
