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

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import ArgumentError
from tinygraph.engine import Array, Op, philox
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


# ---- one input: its slopes, and what its mistakes may look like ----------------------------------

MOVES, MOVED_BY = 3, 1e-2  # points nearby at which a doubtful element is looked at again
MOST_HIDDEN = 16  # elements that may be wrong for a kink that cannot be seen
DIRECTIONS = 4  # through all elements of an input that is too large to be checked one by one
MOST_JACOBIAN = 4_000_000  # numbers: more are not kept
ALIKE = 2e-5  # relative to the largest element: a suspicion is confirmed
Guesses = Iterator[tuple[Array | None, str]]  # what diagnosis.py asks of an input


class Comparison:
    """The gradient of one input: what backward says, and the slopes that were measured.

    Attributes
    ----------
    numeric, error, terms : array
        The slopes; their distance from `analytic` as a multiple of what is tolerated; the sums of
        absolute terms.  NaN where an element was not compared.
    masked : array of bool
        The elements that sit on a kink.
    rows, jacobian : list of int, array
        Flat indices of elements, and for each the derivatives of all outputs.
    others : list of Comparison
        Of the other inputs.
    op : Op or None
        The function, where it is a single op.
    """

    def __init__(
        self,
        function: PointFunction,
        position: int,
        upstream: Array,
        center: Array,
        analytic: Array | None,
    ) -> None:
        self.function, self.position = function, position
        self.weights, self.center = upstream, center  # both flat, of all outputs
        self.upstream, self.output = function.split(upstream)[0], function.split(center)[0]
        self.analytic = np.asarray(analytic, np.float64)
        self.inputs, self.shape = function.arrays, self.analytic.shape
        self.arrays = list(function.arrays)
        self.arrays[position] = self.inputs[position].copy()
        self.largest = largest(self.inputs[position], 1.0)
        self.numeric, self.error, self.terms = (np.full(self.shape, np.nan) for _ in range(3))
        self.masked = np.zeros(self.shape, bool)
        self.rows: list[int] = []
        self.jacobian_rows: list[Array] = []
        self.others: list[Comparison] = []
        self.op: Op | None = None

    # ---- measuring --------------------------------------------------------------------------

    def slope(self, at: int | slice, direction: Any, analytic: float, x: float) -> Slope:
        """The slope where the elements `at` move along a direction."""
        moved = self.arrays[self.position].reshape(-1)
        base = moved[at].copy()

        def line(t: float) -> Array:
            moved[at] = base + t * direction
            try:
                return self.function.value(self.arrays)
            except ArgumentError:  # a step beyond what the op takes: a probability above 1
                return np.full(self.center.shape, np.nan)
            finally:
                moved[at] = base

        return slope_along(line, self.center, self.weights, analytic, x, self.largest)

    def element(self, index: int) -> Slope:
        """The slope along one element."""
        x = float(self.inputs[self.position].reshape(-1)[index])
        return self.slope(index, 1.0, float(self.analytic.reshape(-1)[index]), x)

    def add(self, index: int) -> None:
        """Measure the slope along one element, and keep it."""
        slope, at = self.element(index), np.unravel_index(index, self.shape)
        room = (len(self.rows) + 1) * self.center.size <= MOST_JACOBIAN
        if room and np.isfinite(slope.of_outputs).all():
            self.rows.append(index)
            self.jacobian_rows.append(slope.of_outputs)
        with np.errstate(all="ignore"):
            self.terms[at] = np.abs(self.weights) @ np.abs(slope.of_outputs)
        self.masked[at] = slope.kinked
        if not slope.kinked:
            error = abs(self.analytic[at] - slope.numeric)
            error /= max(slope.tolerance, np.finfo(np.float64).tiny)
            self.numeric[at] = slope.numeric
            self.error[at] = error if np.isfinite(error) else np.inf

    def leave_out_mismatches(self) -> None:
        """They sit on kinks after all."""
        at = self.wrong
        self.numeric[at] = self.error[at] = np.nan
        self.masked[at] = True

    def wrong_element(self, direction: Array) -> int:
        """The flat index of an element whose slope is wrong along a direction, or -1.

        A direction with a wrong slope is cut into halves, one of which is wrong too.
        """
        low, high = 0, direction.size
        if not self._wrong_along(direction, low, high):
            return -1
        while high - low > 1:
            middle = (low + high) // 2
            if self._wrong_along(direction, low, middle):
                high = middle
            elif self._wrong_along(direction, middle, high):
                low = middle
            else:
                return -1  # each half is within its tolerance, or crosses kinks
        return low

    def _wrong_along(self, direction: Array, low: int, high: int) -> bool:
        part = direction[low:high]
        analytic = float(self.analytic.reshape(-1)[low:high] @ part)
        slope = self.slope(slice(low, high), part, analytic, 1.0)
        return not slope.kinked and abs(analytic - slope.numeric) > slope.tolerance

    # ---- what was found ---------------------------------------------------------------------

    @property
    def wrong(self) -> Array:
        return np.asarray(self.error > 1)

    @property
    def checked(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.error)))

    @property
    def known(self) -> Array:
        return np.isfinite(self.numeric)

    @property
    def worst(self) -> Mismatch | None:
        """The element that differs most; None where none was compared."""
        if np.isnan(self.error).all():
            return None
        at = tuple(int(i) for i in np.unravel_index(np.nanargmax(self.error), self.shape))
        numbers = [float(a[at]) for a in (self.analytic, self.numeric, self.error)]
        return Mismatch(self.position, at, *numbers)

    @cached_property
    def jacobian(self) -> Array:  # asked for when all elements were measured
        return np.array(self.jacobian_rows).reshape(-1, self.center.size)

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian is known for the compared elements, and there is one output."""
        return bool(self.rows) and len(self.function.shapes) == 1

    @property
    def elementwise(self) -> bool:
        """Whether each output is known to depend on one input element alone."""
        size = np.abs(self.jacobian)
        alone = (size > 1e-9 * size.max(initial=0)).sum(axis=1) <= 1
        return self.has_jacobian and bool(alone.all())

    @property
    def settings(self) -> dict[str, Any]:
        """The hyper-parameters of the op."""
        return dict(vars(self.op)) if self.op is not None else {}

    def looks_like(self, suspicion: Array) -> bool:
        """Whether backward computes `suspicion`; elements that are NaN there are passed over."""
        if suspicion.shape != self.shape:
            return False
        at = self.known & np.isfinite(suspicion) & np.isfinite(self.analytic)
        if at.sum() * 2 < self.known.sum() or not (at & self.wrong).any():
            return False
        supposed, analytic = suspicion[at], self.analytic[at]
        difference = np.max(np.abs(supposed - analytic))
        # The suspicion must explain what the true gradient does not.
        truth = np.max(np.abs(self.numeric[at] - analytic))
        size = max(np.max(np.abs(supposed)), np.max(np.abs(analytic)))
        return bool(difference <= ALIKE * size and difference < 0.1 * truth)

    def spread(self, values: Array) -> Array:
        """Numbers of the measured elements at their places, NaN elsewhere."""
        out = np.full(self.analytic.size, np.nan)
        out[self.rows] = values
        return out.reshape(self.shape)

    def through(self, weights: Array) -> Array:
        """The gradient of sum(weights * output): what an upstream gradient of `weights` gives."""
        return self.spread(self.jacobian @ np.asarray(weights, np.float64).reshape(-1))


def compare(
    function: PointFunction,
    analytic: list[Array | None],
    upstream: Array,
    seed: int,
    max_elements: int,
) -> list[Comparison]:
    """Difference the function along elements and directions of each input in `wrt`."""
    rng = np.random.Generator(philox(seed, 2))
    center = function.value()
    found = [Comparison(function, p, upstream, center, analytic[p]) for p in function.wrt]
    for one in found:
        one.others = [other for other in found if other is not one]
        size = one.analytic.size
        elements = list(range(size))
        if size > max_elements:
            drawn = rng.choice(size - 2, max(max_elements // 4, 1), replace=False) + 1
            elements = [0, *sorted(int(i) for i in drawn), size - 1]
        for index in elements:
            one.add(index)
        if size > max_elements:
            for _ in range(DIRECTIONS):
                index = one.wrong_element(rng.standard_normal(size))
                if index >= 0 and index not in elements:
                    one.add(index)
    return found


def worst_of(found: list[Comparison]) -> Mismatch | None:
    """The element of all inputs that differs most."""
    compared = [one.worst for one in found if one.worst is not None]
    return max(compared, key=lambda mismatch: mismatch.error, default=None)


def hidden_kinks(found: list[Comparison], seed: int) -> bool:
    """Whether all wrong elements sit on kinks that cannot be seen.

    Two ties may cancel: max(x, c) - max(c, x) is 0 everywhere, without a kink; yet at a tie
    backward passes the gradient to the first operand of each, which gives 1.  So where there are
    other kinks, wrong elements are looked at again from points nearby, at which nothing ties: a
    backward that is wrong is wrong there as well.
    """
    wrong = [(one, int(i)) for one in found for i in np.flatnonzero(one.wrong)]
    if not any(one.masked.any() for one in found) or len(wrong) > MOST_HIDDEN:
        return False
    function, upstream = found[0].function, found[0].weights
    rng = np.random.Generator(philox(seed, 3))
    compared = dict.fromkeys(range(len(wrong)), 0)
    for _ in range(MOVES):
        arrays = list(function.arrays)
        for i in function.wrt:
            arrays[i] = arrays[i] + MOVED_BY * rng.standard_normal(arrays[i].shape)
        moved = function.with_arrays(arrays, function.wrt)
        try:
            analytic, center = moved.vjp(upstream), moved.value()
        except ArgumentError:  # beyond what the op takes
            return False
        for which, (one, index) in enumerate(wrong):
            there = Comparison(moved, one.position, upstream, center, analytic[one.position])
            slope = there.element(index)
            if slope.kinked:
                continue
            compared[which] += 1
            if not abs(there.analytic.reshape(-1)[index] - slope.numeric) <= slope.tolerance:
                return False
    return all(count >= MOVES - 1 for count in compared.values())


def largest(a: Array, least: float = 0.0) -> float:
    """The largest finite absolute value, and no less than `least`."""
    return float(np.max(np.abs(a[np.isfinite(a)]), initial=least))
