"""Checks of hyper-parameters that several ops have: numbers such as a slope or a threshold."""

from __future__ import annotations

import math
from typing import Any

from tinygraph.errors import ArgumentError


def finite(op: str, argument: str, value: Any) -> float:
    """A finite Python float, which does not promote float32 arrays, or an ArgumentError.

    >>> finite("elu", "alpha", 1)
    1.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ArgumentError(op, argument, "a finite number", repr(value))
    return number


def positive(op: str, argument: str, value: Any) -> float:
    """A finite number above 0."""
    number = finite(op, argument, value)
    if number <= 0:
        raise ArgumentError(op, argument, "a number above 0", number)
    return number
