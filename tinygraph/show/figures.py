"""Matplotlib figures without pyplot: no window, no global state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinygraph.errors import TinygraphError, install


class MissingLibraryError(TinygraphError, ImportError):
    """A picture that needs a library which is not installed."""


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches; white, so that it can be read on a dark page too."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingLibraryError(
            f"show: these pictures need matplotlib. Way out: {install('plot')}"
        ) from None
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def save(figure: Any, target: Path) -> Path:
    """Write the figure in the format that the suffix says."""
    figure.savefig(target, dpi=150)
    return target
