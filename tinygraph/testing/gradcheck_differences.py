"""Slopes by five points in float64, and the elements at which there is no slope to compare with.

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
from typing import NamedTuple

import numpy as np

from tinygraph.shapes import Array

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
