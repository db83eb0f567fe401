"""Matplotlib figures without pyplot: no window, no global state."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import TinygraphError, install
from tinygraph.base.page_paths import write
from tinygraph.engine import Array

MOST = 1e300

# What all functions say that draw with matplotlib, and those that are given classes.
PICTURE = """
Parameters
----------
path : str or Path
    `.svg`, `.png` or `.pdf`.

Returns
-------
Path
    The file that was written.

Raises
------
ArgumentError
    No such format or folder.
"""
CLASSES = """
Parameters
----------
labels, predictions : Tensor or array of int (N,)
    True and predicted classes, numbered from 0.
classes : sequence of str, optional
    Their names; by default their numbers.

Raises
------
ShapeError
    Labels and predictions are not both (N,), with N at least 1.
DtypeError
    Labels or predictions are no integers.
"""


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


def drawable(numbers: Any) -> Array:
    """Numbers of float64 as matplotlib can draw them, which needs room for axes around them.

    >>> drawable([1e308, -2.0, np.inf]).tolist()
    [1e+300, -2.0, inf]
    """
    found = np.asarray(numbers, np.float64)
    return np.where(np.isfinite(found), np.clip(found, -MOST, MOST), found)


def save(figure: Any, target: Path) -> Path:
    """Write the figure in the format that the suffix says."""
    drawn = io.BytesIO()
    with np.errstate(all="ignore"):  # a curve may go up to the largest float
        figure.savefig(drawn, dpi=150, format=target.suffix[1:].lower())
    return write("show", target, drawn.getvalue())
