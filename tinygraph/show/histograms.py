"""Histograms of a model's weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, writable
from tinygraph.base.page_text import for_matplotlib
from tinygraph.engine import Array, Shape
from tinygraph.ops.common import documented
from tinygraph.show.figures import PICTURE, drawable, new_figure, save
from tinygraph.show.labels import as_array

BINS = 40
MAX_PANELS = 200


@dataclass(frozen=True)
class Weights:
    """The distribution of one array's numbers; those that are not finite are only counted."""

    name: str
    shape: Shape
    mean: float  # NaN where there is nothing
    std: float
    broken: int  # how many are not finite
    counts: Array
    edges: Array

    @property
    def caption(self) -> str:
        """Shape, mean and standard deviation in words."""
        text = f"{self.shape}  mean {self.mean:.3g}, std {self.std:.3g}"
        return f"{text}, {self.broken} not finite" if self.broken else text


@documented(PICTURE)
def histograms(state_or_model: Any, path: AnyPath = "histograms.png") -> Path:
    """Draw a histogram of the numbers of each parameter, with shape, mean and standard deviation.

    Parameters
    ----------
    state_or_model : mapping from name to array or Tensor, or Module
        As `state_dict` gives it.  Arrays of integers are left out.

    Raises
    ------
    ArgumentError
        ... There are no arrays of floats, or more than 200.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.histograms(tg.nn.Linear(64, 10), f"{folder}/weights.svg").name
    'weights.svg'
    """
    target = writable("show.histograms", path, (".svg", ".png", ".pdf"))
    panels = distributions("show.histograms", state_or_model)
    if len(panels) > MAX_PANELS:
        raise ArgumentError(
            "show.histograms",
            "state_or_model",
            f"at most {MAX_PANELS} arrays",
            len(panels),
            "draw a part: {name: array for ... if name.startswith('layer1.')}",
        )
    columns = min(4, math.ceil(math.sqrt(len(panels))))
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(3.4 * columns, 2.3 * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        axes.stairs(panel.counts, panel.edges, fill=True, color="#2f66c4")
        axes.set_title(f"{for_matplotlib(panel.name, 40)}\n{panel.caption}", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.locator_params(axis="x", nbins=5)
        axes.locator_params(axis="y", nbins=5, integer=True)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    return save(figure, target)


def distributions(op: str, state_or_model: Any) -> list[Weights]:
    """The distribution of each array of floats."""
    state = state_or_model
    if callable(getattr(state, "state_dict", None)) and not isinstance(state, type):
        state = state.state_dict()
    if not isinstance(state, Mapping):
        raise ArgumentError(
            op,
            "state_or_model",
            "a Module or a mapping from names to arrays",
            type(state).__name__,
            "pass model.state_dict()",
        )
    arrays = {str(name): as_array(values) for name, values in state.items()}
    found = [_distribution(name, a) for name, a in arrays.items() if a.dtype.kind == "f"]
    if not found:
        raise ArgumentError(
            op, "state_or_model", "at least one array of floats", f"{len(arrays)} arrays"
        )
    return found


def _distribution(name: str, array: Array) -> Weights:
    numbers = drawable(array[np.isfinite(array)])
    if not numbers.size:
        return Weights(
            name, array.shape, math.nan, math.nan, array.size, np.zeros(1), np.array([-1.0, 1.0])
        )
    low, high = float(numbers.min()), float(numbers.max())
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        # too narrow to be cut into bins, as a constant is: one bar, with room around it
        room = abs(low) / 2 or 1.0
        low, high = low - room, low + room
    counts, edges = np.histogram(numbers, BINS, (low, high))
    broken = array.size - numbers.size
    scale = 1e160 if max(abs(low), abs(high)) > 1e150 else 1.0  # of which squares are finite
    scaled = numbers / scale
    mean, std = float(scaled.mean()) * scale, float(scaled.std()) * scale
    return Weights(name, array.shape, mean, std, broken, counts, edges)
