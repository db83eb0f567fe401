"""Docstrings of families: what all members say of arguments, results and errors, said once.

A member's docstring holds what is its own; its sections are filled up from those of the family.

    an argument or error that the member describes     stands as the member says
    a text of the member that begins with ...          continues that of the family
    References                                         the paragraph `Source: ` of the file
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_TITLES = ("Parameters", "Returns", "Raises", "References", "Examples")
_HEADING = re.compile(rf"^({'|'.join(_TITLES)})\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
_SOURCE = re.compile(r"^Source: (.*?)\s*(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)


def documented(family: str = "") -> Callable[[_Function], _Function]:
    """Fill the sections of a docstring up from those of a family, or from the source alone.

    >>> @documented('''
    ...     Parameters
    ...     ----------
    ...     x : Tensor
    ...         Any shape.
    ...
    ...     Returns
    ...     -------
    ...     Tensor
    ...         Same shape.''')
    ... def relu(x):
    ...     \"\"\"x or 0.
    ...
    ...     Returns
    ...     -------
    ...     Tensor
    ...         ... NaN propagates.\"\"\"
    >>> print(relu.__doc__.partition("Returns")[2])
    <BLANKLINE>
    -------
    Tensor
        Same shape.
        NaN propagates.
    """

    _, common = _sections(cleandoc(family))

    def fill(function: _Function) -> _Function:
        if function.__doc__ is None:  # python -OO has none
            return function
        summary, own = _sections(cleandoc(function.__doc__))
        for title, section in common.items():
            own[title] = _merged(section, own[title]) if title in own else section
        if "Parameters" in own:
            arguments = [*function.__code__.co_varnames]
            entries = _entries(own["Parameters"])
            arguments += [name for entry in entries for name in _names(entry)]  # of **options
            entries.sort(key=lambda entry: arguments.index(_names(entry)[0]))
            own["Parameters"] = "".join(entries)
        source = _SOURCE.search(function.__globals__.get("__doc__") or "")
        if source:
            own.setdefault("References", source[1])
        parts = [f"{t}\n{'-' * len(t)}\n{own[t].rstrip()}" for t in _TITLES if t in own]
        function.__doc__ = "\n\n".join([summary, *parts])
        return function

    return fill


def _sections(text: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the sections by their titles."""
    summary, *parts = _HEADING.split(text)
    bodies = [body.rstrip() + "\n" for body in parts[1::2]]
    return summary.rstrip(), dict(zip(parts[::2], bodies, strict=True))


def _entries(section: str) -> list[str]:
    """What a section describes, one text each: a line of names, and indented lines."""
    return [entry for entry in _ENTRY.split(section) if entry]


def _names(entry: str) -> list[str]:
    """ "x, y : Tensor" describes x and y, "ShapeError, DtypeError" those two."""
    return re.findall(r"\w+", entry.partition("\n")[0].partition(" :")[0])


def _merged(family: str, own: str) -> str:
    """The entries of both: the member's in the place of the family's of the same names."""
    mine = {tuple(_names(entry)): entry for entry in _entries(own)}
    said = {name for names in mine for name in names}
    made = []
    for entry in _entries(family):
        names = tuple(_names(entry))
        head, _, text = mine.get(names, "").partition("\n")
        if text.lstrip().startswith("... "):
            made.append(entry + text.replace("... ", "", 1))
            del mine[names]
        elif head:
            made.append(mine.pop(names))
        elif not said.intersection(names):
            made.append(entry)
    return "".join([*made, *mine.values()])
