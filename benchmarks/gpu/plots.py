"""Plots of the page, as SVG files beside it, where matplotlib is installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.page import REHEARSAL, Plot


def draw(plots: Sequence[Plot], folder: Path, stem: str, rehearse: bool) -> dict[str, str]:
    """Draw all plots; the name of each one's file, or nothing without matplotlib."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {}
    files = {}
    folder.mkdir(parents=True, exist_ok=True)
    for plot in plots:
        figure = Figure(figsize=(6, 3.5), layout="constrained")
        axes = figure.subplots()
        for label, points in plot.lines.items():
            axes.plot(*zip(*points, strict=True), marker="o", label=label)
        axes.set(xlabel=plot.x, ylabel=plot.y, xscale="log", ylim=(0, None))
        xs = sorted({x for points in plot.lines.values() for x, _ in points})
        axes.set_xticks(xs, [f"{x:g}" for x in xs], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_title(plot.title + (f"\n{REHEARSAL}" if rehearse else ""))
        axes.legend()
        files[plot.name] = f"{stem}-{plot.name}.svg"
        figure.savefig(folder / files[plot.name])
    return files
