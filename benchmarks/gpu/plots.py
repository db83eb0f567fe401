"""Plots of the page, as SVG files beside it, where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.page import REHEARSAL
from benchmarks.report import Plot, draw_lines


def draw(plots: Sequence[Plot], folder: Path, stem: str, rehearse: bool) -> dict[str, str]:
    """Draw all plots; the name of each one's file, or nothing without matplotlib."""
    files = {}
    for plot in plots:
        name = f"{stem}-{plot.name}.svg"
        if draw_lines(plot, folder / name, REHEARSAL if rehearse else ""):
            files[plot.name] = name
    return files
