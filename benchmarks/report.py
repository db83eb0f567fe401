"""Tables in Markdown, plots as SVG where matplotlib is installed, and the file that holds them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Plot:
    """Lines over sizes: a name for the file, axis labels, and points (x, y) by label.

    With `log_y` lines in proportion to the size are straight, and a factor is as high everywhere.
    """

    name: str
    title: str
    x: str
    y: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    log_y: bool = False


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["size", "share"], [["256", "0.5"]]))
    | size | share |
    |---|---|
    | 256 | 0.5 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(line) + " |" if i != 1 else "|" + "|".join(line) + "|"
        for i, line in enumerate(lines)
    )


@dataclass
class Table:
    """A table that grows while a page is written."""

    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def __str__(self) -> str:
        return table(self.head, self.rows)


def write_page(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def new_figure(width: float, height: float) -> tuple[Any, Any] | None:
    """A figure without a screen, and its axes; None where matplotlib is not installed."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def plain_ticks(axis: Any) -> None:
    """Numbers such as 0.5, 1, 2 along a logarithmic axis, in place of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def draw_lines(plot: Plot, path: Path, note: str = "") -> bool:
    """Draw lines over sizes on a logarithmic axis; False, and no file, without matplotlib.

    Lines of others are dashed.  The legend has the order in which the lines end.
    """
    made = new_figure(9.5, 3.8)
    if made is None:
        return False
    figure, axes = made
    lines = sorted(plot.lines.items(), key=lambda line: line[1][-1][1], reverse=True)
    for label, points in lines:
        style = "-" if label.startswith("tinygraph") else "--"
        colour = f"C{list(plot.lines).index(label)}"
        axes.plot(*zip(*points, strict=True), style, marker="o", color=colour, label=label)
    axes.set(xlabel=plot.x, ylabel=plot.y, xscale="log")
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    if plot.log_y:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    else:
        axes.set_ylim(0, None)
    xs = sorted({x for points in plot.lines.values() for x, _ in points})
    axes.set_xticks(xs, [f"{x:g}" for x in xs], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_title(plot.title + (f"\n{note}" if note else ""))
    figure.legend(loc="outside right center", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True
