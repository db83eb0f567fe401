"""Tables as text: columns side by side, and numbers in units that fit."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = (0,)) -> list[str]:
    """Lines of text; the columns `left` to the left, numbers to the right.

    >>> print("\\n".join(aligned([["op", "calls"], ["relu", "12"]])))
    op    calls
    relu     12
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                cell.ljust(width) if i in left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
        ).rstrip()
        for row in rows
    ]


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
