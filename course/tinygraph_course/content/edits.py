"""Edits of a solution as files write them: hunks of whole lines, as `diff -u` shows them.

    ```diff
     OH = windows(H, kernel, stride)
    -return (size - kernel) // stride + 1
    +return (size - kernel) // stride
    ```

What begins with a blank or a minus stands in the text, once; what begins with a blank or a plus
stands there afterwards.  A line `@@` parts two hunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tinygraph.base.errors import ArgumentError


class Hunk(NamedTuple):
    """Lines of a text, and those that take their place; `place` says where they are written."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    place: str = "an edit"


def read_hunks(lines: Sequence[str], place: str) -> list[Hunk]:
    """The hunks of a block.

    Parameters
    ----------
    lines : sequence of str
    place : str
        Where they stand, for an error.

    Raises
    ------
    ArgumentError
        A line begins with something else, or a hunk changes nothing.

    >>> first, second = read_hunks(["-a", "+b", "@@", " c", "+d"], "here")
    >>> first.old, first.new, second.old, second.new
    (('a',), ('b',), ('c',), ('c', 'd'))
    """
    hunks: list[tuple[list[str], list[str]]] = [([], [])]
    for line in lines:
        sign, rest = line[:1] or " ", line[1:]
        if line == "@@":
            hunks.append(([], []))
        elif sign not in " -+":
            expected = "a line that begins with a blank, -, + or @@"
            raise ArgumentError("course", place, expected, repr(line))
        else:
            hunks[-1][0].extend([rest] if sign != "+" else [])
            hunks[-1][1].extend([rest] if sign != "-" else [])
    for old, new in hunks:
        if old == new or not old:
            raise ArgumentError("course", place, "lines that change, and where", "\n".join(lines))
    return [Hunk(tuple(old), tuple(new), place) for old, new in hunks]


def edited(text: str, hunks: Sequence[Hunk]) -> str:
    """A text with its lines replaced.

    Raises
    ------
    ArgumentError
        A hunk that fits nowhere, or at several places: it has rotted.

    >>> edited("a\\nb\\nc\\n", [Hunk(("b",), ("B",)), Hunk(("a",), ())])
    'B\\nc\\n'
    """
    lines = text.splitlines()
    found: list[tuple[int, Hunk]] = []
    for hunk in hunks:
        size = len(hunk.old)
        at = [i for i in range(len(lines) - size + 1) if tuple(lines[i : i + size]) == hunk.old]
        if len(at) != 1:
            expected, got = "lines that stand once in the text", "\n".join(hunk.old)
            raise ArgumentError("course", hunk.place, expected, f"{len(at)} times: {got!r}")
        found.append((at[0], hunk))
    for start, hunk in sorted(found, reverse=True):  # from below: places above stay
        lines[start : start + len(hunk.old)] = hunk.new
    return "\n".join(lines) + "\n"
