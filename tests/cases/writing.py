"""How a case file is laid out: one line for what fits into one, else one entry a line.

Rows of numbers stay together, so that a diff shows the row that changed.
"""

from __future__ import annotations

import json
import math
from typing import Any

COLUMNS = 100


def layout(value: Any, indent: int = 0, used: int = 0) -> str:
    """JSON text; `used` columns of the first line are taken already."""
    line = json.dumps(value, ensure_ascii=False)
    if indent and used + len(line) < COLUMNS:  # one more for a comma
        return line
    if not isinstance(value, (dict, list)) or not value:
        return line
    inner, outer = " " * (indent + 2), " " * indent
    if isinstance(value, dict):
        entries = []
        for key, part in value.items():
            head = f"{inner}{json.dumps(key)}: "
            entries.append(head + layout(part, indent + 2, len(head)))
        return "{\n" + ",\n".join(entries) + f"\n{outer}}}"
    if not any(isinstance(part, (dict, list)) for part in value):
        return "[\n" + filled([json.dumps(part) for part in value], inner) + f"\n{outer}]"
    parts = [inner + layout(part, indent + 2, indent + 2) for part in value]
    return "[\n" + ",\n".join(parts) + f"\n{outer}]"


def filled(words: list[str], margin: str) -> str:
    """As many words on a line as fit."""
    lines, line = [], margin
    for i, word in enumerate(words):
        word += "," if i + 1 < len(words) else ""
        if len(line) + len(word) > COLUMNS and line != margin:
            lines.append(line.rstrip())
            line = margin
        line += word + " "
    return "\n".join([*lines, line.rstrip()])


def spelled(number: float | int | bool) -> Any:
    """A number as JSON can hold it: whole floats without a fraction, the rest by name."""
    if isinstance(number, float):
        if not math.isfinite(number):
            return "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
        if number.is_integer() and abs(number) < 1e15 and math.copysign(1, number) * number > 0:
            return int(number)
        return 0 if number == 0 and math.copysign(1, number) > 0 else number
    return number


def nested(values: Any) -> Any:
    """Nested lists of numbers, spelled."""
    return [nested(part) for part in values] if isinstance(values, list) else spelled(values)
