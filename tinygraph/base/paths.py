"""What a user gives as a path: one rule for every argument that is one.

A str, or an object whose `__fspath__` gives one (os.PathLike).  `~` and `~name` at its start are
homes, as in a shell.  What no path can be is refused here, before anything is made or read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tinygraph.base.errors import ArgumentError

AnyPath = str | os.PathLike[str]


def as_path(op: str, argument: str, path: Any) -> Path:
    """The path that a user has given, with homes in the place of `~`.

    Parameters
    ----------
    op, argument : str
        For the error: who asks, and what the argument is called.
    path : str or os.PathLike
        A Path stays what it is, but for `~`.

    Raises
    ------
    ArgumentError
        Another type, such as bytes or an open file; a text that is empty or has a zero in it; `~`
        of a user who is not there, or without a home.

    Examples
    --------
    >>> as_path("load", "path", "a/~b")
    PosixPath('a/~b')
    >>> as_path("load", "path", b"a")
    Traceback (most recent call last):
    tinygraph.errors.ArgumentError: load: path: expected a str or Path, got bytes. ...
    """
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str):
        got = "bytes" if isinstance(path, bytes) else f"a {type(path).__name__}"
        way_out = "os.fsdecode(path)" if isinstance(text, bytes) else "the name of the file"
        raise ArgumentError(op, argument, "a str or Path", got, way_out)
    if not text or "\0" in text:
        raise ArgumentError(op, argument, "the name of a file or folder", repr(text))
    found = path if isinstance(path, Path) else Path(text)
    if not text.startswith("~"):
        # "./~" is a name like any other; the Path of it begins with "~", and would be a home later
        return Path(os.path.abspath(text)) if str(found).startswith("~") else found
    try:
        return found.expanduser()
    except RuntimeError:  # no such user; or neither $HOME nor an entry for this one
        way_out = f"the whole path; one of that name here is {os.path.abspath(text)}"
        raise ArgumentError(op, argument, "a home that is known", repr(text), way_out) from None


def typed(path: object) -> str:
    """A path as it has to be typed into a shell, whatever its name is.

    >>> typed("runs/first"), typed("a b"), typed("-x"), typed("~x")
    ('runs/first', "'a b'", './-x', "'./~x'")
    """
    import shlex  # here: without advice it costs no time at import

    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith(("-", "~")) else text)
