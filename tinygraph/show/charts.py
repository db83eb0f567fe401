"""Charts as SVG for a page: lines over the epochs, and bars.

Colours and fonts come from the page's style sheet (report.css), so that charts follow the page into
the dark.  Every mark that a reader may want to read off has a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from tinygraph.base.page import escape
from tinygraph.show.histograms import Weights

WIDTH, HEIGHT = 400.0, 230.0
LEFT, RIGHT, TOP, FLOOR = 58.0, 20.0, 10.0, HEIGHT - 34.0  # margins of the plot, and its end
DOTS = 30  # with more points than this a line has no dots
TINY_DOTS = 400  # with more than this, no tooltips

Points = Sequence[tuple[float, float | None]]  # None breaks the line


def ticks(low: float, high: float, most: int = 6, least_step: float = 0.0) -> list[float]:
    """At most so many round numbers in [low, high]: multiples of 1, 2 or 5 times a power of ten.

    >>> ticks(0.0, 1.0), ticks(1.0, 30.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [10.0, 20.0, 30.0])
    """
    span = high - low
    if not 0 < span < math.inf:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(f * power for f in (1, 2, 5, 10, 20) if span / (f * power) <= most - 0.5)
    step = max(step, least_step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12 - math.floor(math.log10(step))) for k in range(first, last + 1)]


def number(value: float) -> str:
    """As few digits as tell ticks apart.

    >>> number(0.25), number(30.0), number(-0.0), number(1e-07)
    ('0.25', '30', '0', '1e-07')
    """
    return f"{value + 0.0:.6g}"


def lines(name: str, columns: Sequence[tuple[str, Points]]) -> str:
    """One line for each column, over the epochs."""
    xs = [x for _, points in columns for x, y in points if y is not None]
    ys = [y for _, points in columns for _, y in points if y is not None]
    x0, x1 = min(xs), max(xs)
    low, high = min(ys), max(ys)
    room = 0.05 * (high - low) or abs(low) / 2 or 0.5
    low, high = low - room, high + room
    if x0 == x1:
        x0, x1 = x0 - 1, x1 + 1
    at, up = _scales((x0, x1), (low, high))
    epochs = ticks(x0, x1, 8, least_step=1) if len(set(xs)) > 1 else xs[:1]
    marks = ticks(low, high)
    drawn = _frame({x: at(x) for x in epochs}, {y: up(y) for y in marks}, "epoch")
    for k, (column, points) in enumerate(columns):
        drawn.append(f'<g class="series s{k % 4}">')
        for _, piece in groupby(points, lambda point: point[1] is None):  # between its gaps
            path = [f"{at(x):.1f} {up(y):.1f}" for x, y in piece if y is not None]
            drawn += [f'<path d="M{" L".join(path)}"/>'] if len(path) > 1 else []
        known = [(x, y) for x, y in points if y is not None]
        for x, y in known if len(known) <= TINY_DOTS else []:
            radius = 4.5 if len(known) == 1 else 2.6 if len(known) <= DOTS else 0.8
            tip = escape(f"epoch {number(x)}: {column} {number(y)}")
            drawn.append(
                f'<circle cx="{at(x):.1f}" cy="{up(y):.1f}" r="{radius}">'
                f"<title>{tip}</title></circle>"
            )
        if len(known) == 1:  # no line says where it lies; two of these stand on either side
            (x, y), side = known[0], 1 if k % 2 == 0 else -1
            anchor = "start" if side > 0 else "end"
            drawn.append(_text(at(x) + 10 * side, up(y) + 4, anchor, number(y)))
        drawn.append("</g>")
    return _svg(name, drawn)


def bars(weights: Weights) -> str:
    """The histogram of an array's numbers."""
    edges = [float(e) for e in weights.edges]
    most = float(max(weights.counts.max(), 1))
    at, up = _scales((edges[0], edges[-1]), (0.0, most * 1.04))
    values, marks = ticks(edges[0], edges[-1]), ticks(0.0, most * 1.04, 5, least_step=1)
    drawn = _frame({x: at(x) for x in values}, {y: up(y) for y in marks}, "value")
    drawn.append('<g class="bars">')
    for left, right, count in zip(edges, edges[1:], weights.counts, strict=False):
        if count:
            x, y = at(left), up(float(count))
            tip = f"{int(count)} from {left:.4g} to {right:.4g}"
            drawn.append(
                f'<rect x="{x:.2f}" y="{y:.1f}" width="{at(right) - x:.2f}" '
                f'height="{FLOOR - y:.1f}"><title>{tip}</title></rect>'
            )
    return _svg(f"Histogram of {weights.name}", [*drawn, "</g>"])


def swatch(k: int) -> str:
    """The line of column k, for a legend."""
    return (
        f'<svg class="swatch" viewBox="0 0 30 10" width="30" height="10" aria-hidden="true">'
        f'<g class="series s{k % 4}"><path d="M1 5 H29"/></g></svg>'
    )


def _svg(name: str, drawn: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
            f'aria-label="{escape(name)}">',
            *drawn,
            "</svg>",
        ]
    )


def _scales(
    across: tuple[float, float], down: tuple[float, float]
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Where values lie in the picture, from left to right and from bottom to top."""

    def x(value: float) -> float:
        return LEFT + (value - across[0]) / (across[1] - across[0]) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return FLOOR - (value - down[0]) / (down[1] - down[0]) * (FLOOR - TOP)

    return x, y


def _frame(xs: dict[float, float], ys: dict[float, float], x_name: str) -> list[str]:
    """Grid lines where the marks of both axes lie, with their numbers; what the lower one is."""
    drawn = ['<g class="frame">']
    for mark, y in ys.items():
        drawn.append(f'<path d="M{LEFT} {y:.1f} H{WIDTH - RIGHT}"/>')
        drawn.append(_text(LEFT - 6, y + 4, "end", number(mark)))
    for mark, x in xs.items():
        drawn.append(f'<path d="M{x:.1f} {TOP} V{FLOOR + 4}"/>')
        drawn.append(_text(x, FLOOR + 16, "middle", number(mark)))
    return [*drawn, _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, "middle", x_name), "</g>"]


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
