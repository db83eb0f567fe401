"""JSON that a file holds, read in one place: what is none, or is more than JSON, is a ValueError.

`json.loads` by itself lets a later key win over an earlier one, makes an infinity of 1e400, and
ends in a RecursionError for brackets in brackets.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tinygraph.base.disk import open_regular
from tinygraph.base.text_file import text_of

MOST_BYTES = 1 << 28  # of a file


def parse(text: str | bytes) -> Any:
    """What a JSON text says.  NaN and Infinity are read, for Python writes them.

    >>> parse('{"a": [1, null]}')
    {'a': [1, None]}
    >>> parse("[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: brackets in one another, too many to read
    """
    try:
        return json.loads(text, object_pairs_hook=_each_once, parse_float=_finite)
    except RecursionError:
        raise ValueError("brackets in one another, too many to read") from None


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file; ValueError where it is none or too long, OSError if unreadable."""
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise ValueError(f"{size:,} bytes, more than {most:,}")
        return text_of(file.read())


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} twice")
    return content


def _finite(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError(f"{text:.40} is larger than a float")
    return found
