"""Checks of a single argument: a count, a number, a word.  What passes comes back as Python has it.

numpy's numbers become Python's, which do not promote float32; True and False are no numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tinygraph.base.errors import ArgumentError, nearest
from tinygraph.base.incoming import unmasked

Word = TypeVar("Word")

MAX_WORD = (1 << 64) - 1  # seeds, epochs: what a word of the random numbers holds


def whole(op: str, argument: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """An int from `least` to `most`, or ArgumentError.

    >>> whole("DataLoader", "batch_size", 0)
    Traceback (most recent call last):
    ...
    tinygraph.errors.ArgumentError: DataLoader: batch_size: expected an int of at least 1, got 0.
    """
    unmasked(op, argument, value)
    try:
        found = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = least - 1
    if found < least or (most is not None and found > most):
        highest = "2**64 - 1" if most == MAX_WORD else most
        limits = f"of at least {least}" if most is None else f"from {least} to {highest}"
        raise ArgumentError(op, argument, f"an int {limits}", repr(value))
    return found


def number(
    op: str,
    argument: str,
    value: Any,
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> float:
    """A finite number within the limits that are given, as a float, or ArgumentError.

    `above` and `below` are not among the numbers allowed, `least` and `most` are.  With `infinite`,
    infinity is a number too.

    >>> number("elu", "alpha", 1), number("Dropout", "p", 0.5, 0, 1)
    (1.0, 0.5)
    """
    try:
        found = math.nan if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if (
        math.isnan(found)
        or (math.isinf(found) and not infinite)
        or (least is not None and found < least)
        or (most is not None and found > most)
        or (above is not None and found <= above)
        or (below is not None and found >= below)
    ):
        limits = _limits(least, most, above, below)
        kind = "a finite number" if math.isinf(found) or not limits else "a number"
        raise ArgumentError(op, argument, f"{kind}{limits}", repr(value))
    return found


def _limits(
    least: float | None, most: float | None, above: float | None, below: float | None
) -> str:
    """What follows "a number": " from 0 to below 1", " of at least 0", " above 0", ..."""
    high = f"below {below:g}" if below is not None else f"{most:g}" if most is not None else ""
    if least is None:
        low = f" above {above:g}" if above is not None else ""
        return f"{low}, to {high}" if low and high else f"{low} {high}".rstrip()
    return f" from {least:g} to {high}" if high else f" of at least {least:g}"


def alone(
    op: str, argument: str, others: Mapping[str, Any], way_out: str = "pass one of them"
) -> None:
    """ArgumentError where one of `others` is given (is true) beside an argument that excludes it.

    >>> alone("DataLoader", "sampler", {"shuffle": True})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tinygraph.errors.ArgumentError: DataLoader: sampler: expected without shuffle, got both. Way ...
    """
    given = [name for name, is_given in others.items() if is_given]
    if given:
        raise ArgumentError(op, argument, f"without {', '.join(given)}", "both", way_out)


def one_of(op: str, argument: str, value: Word, known: Iterable[Word]) -> Word:
    """One of the known words, or ArgumentError, which proposes the nearest.

    >>> one_of("mse_loss", "reduction", "mean", ("mean", "sum", "none"))
    'mean'
    """
    words = list(known)
    if value not in words:
        *others, last = map(repr, words)
        expected = f"{', '.join(others)} or {last}" if others else last
        way_out = nearest(str(value), [word for word in words if isinstance(word, str)])
        raise ArgumentError(op, argument, expected, repr(value), way_out)
    return value
