"""Environment variables that are numbers, read in one place: what is none is an ArgumentError."""

from __future__ import annotations

import math
import os

from tinygraph.base.errors import ArgumentError


def count_of(op: str, name: str, usual: int | None, least: int, most: int) -> int | None:
    """The int that a variable says, the usual one where it is not set.

    >>> count_of("demo", "TINYGRAPH_OF_NO_ONE", 3, 1, 9)
    3
    """
    text = os.environ.get(name)
    if text is None:
        return usual
    digits = text.isascii() and text.isdigit() and len(text) <= 20
    if not digits or not least <= int(text) <= most:
        raise _wrong(op, name, f"a whole number from {least} to {most}", text)
    return int(text)


def seconds_of(op: str, name: str, usual: float | None, *, infinite: bool = False) -> float | None:
    """The seconds above 0 that a variable says, the usual ones where it is not set."""
    text = os.environ.get(name)
    if text is None:
        return usual
    try:
        found = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        found = math.nan
    if not found > 0 or (math.isinf(found) and not infinite):
        raise _wrong(op, name, "seconds above 0", text)
    return found


def _wrong(op: str, name: str, expected: str, text: str) -> ArgumentError:
    return ArgumentError(op, name, expected, repr(text), f"unset {name}")
