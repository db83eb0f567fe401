"""Text from outside - names of parameters, of classes, of nodes - made fit to be drawn."""

from __future__ import annotations

LONGEST_NAME = 24  # characters of a class in a picture


def printable(text: str) -> str:
    """Without the control characters that XML does not allow.

    >>> printable("a\\x00b")
    'a\N{REPLACEMENT CHARACTER}b'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def clip(text: str, longest: int) -> str:
    """At most so many characters, the last one an ellipsis where some are left out.

    >>> clip("validation", 5)
    'vali…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def for_matplotlib(text: str, longest: int = LONGEST_NAME) -> str:
    """As it is meant, where matplotlib would read mathematics between two dollar signs."""
    return clip(printable(text), longest).replace("$", r"\$")
