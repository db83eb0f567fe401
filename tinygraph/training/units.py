"""Units for the tables of a profile: one for each column, from what a step comes to."""

from __future__ import annotations


def prefix(total: float) -> tuple[float, str]:
    """The largest of giga, mega and kilo of which there is one, as a factor and a letter.

    >>> prefix(2.5e6), prefix(12.0)
    ((1000000.0, 'M'), (1000.0, 'k'))
    """
    return next(
        ((factor, name) for factor, name in ((1e9, "G"), (1e6, "M")) if total >= factor), (1e3, "k")
    )


def digits(number: float | None) -> str:
    """Three digits; a dash for nothing.

    >>> digits(1234.5), digits(0.01234), digits(0.0)
    ('1234', '0.0123', '-')
    """
    if not number:
        return "-"
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
