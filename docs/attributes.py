"""What Sphinx takes for the type of an attribute and is none.

Of attributes that are described together, `reads, writes : bool`, it reads the field
`:ivar reads, writes:` as the attribute `writes` of the type `reads,`: each gets a field of its own.
"""

from __future__ import annotations

import re

_COLON = "\0"  # stands for one
_TOGETHER = re.compile(r":(ivar|vartype) ((?:\w+, )+\w+):")


def keep_whole(what: str, lines: list[str]) -> None:
    """Before napoleon: of a property it takes what a first line has before a colon for a type."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(":", _COLON)


def whole_again(lines: list[str]) -> list[str]:
    """Behind napoleon: the colons that `keep_whole` hid from it."""
    return [line.replace(_COLON, ":") for line in lines]


def apart(lines: list[str]) -> list[str]:
    """The lines of a docstring, in which a field with several names comes once for each."""
    made, at = [], 0
    while at < len(lines):
        field, end = _TOGETHER.match(lines[at]), at + 1
        if not field:
            made.append(lines[at])
        else:
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            for name in field[2].split(", "):
                made.append(f":{field[1]} {name}:{lines[at][field.end() :]}")
                made += lines[at + 1 : end]
        at = end
    return made
