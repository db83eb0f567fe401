"""Docstrings of families: what all members say of arguments, results and errors, said once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def documented(sections: str, **words: str) -> Callable[[_Function], _Function]:
    """Put sections, in which {word} stands for its text, before the examples of a docstring.

    >>> @documented("Returns\\n-------\\n{what}", what="A number.")
    ... def one():
    ...     \"\"\"One.
    ...
    ...     Examples
    ...     --------
    ...     >>> one()
    ...     1
    ...     \"\"\"
    ...     return 1
    >>> print(one.__doc__.partition(">>>")[0])
    One.
    <BLANKLINE>
    Returns
    -------
    A number.
    <BLANKLINE>
    Examples
    --------
    <BLANKLINE>
    """

    def fill(function: _Function) -> _Function:
        if function.__doc__ is not None:  # python -OO has none
            summary, examples, rest = cleandoc(function.__doc__).partition("Examples\n--------\n")
            function.__doc__ = (
                summary + cleandoc(sections).format(**words) + "\n\n" + examples + rest
            )
        return function

    return fill
