"""Small pictures in a grid, in colours of one scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinygraph.base import ArgumentError, DtypeError, ShapeError
from tinygraph.engine import Array
from tinygraph.show.figures import new_figure
from tinygraph.show.labels import as_array

MAX_TILES = 4096
MAX_PIXELS = 16_000_000  # of all tiles together
BROKEN = (0.0, 0.0, 0.0, 1.0)  # what is not finite
GAP = (0.75, 0.75, 0.75, 1.0)


def checked_tiles(
    op: str, argument: str, given: Any, axes: tuple[str, ...], way_out: str, kinds: str = "fiu"
) -> Array:
    """Numbers with one of these numbers of axes, all of which can be drawn; or an error."""
    array = as_array(given)
    if array.dtype.kind not in kinds:
        raise DtypeError(op, argument, "floats" if kinds == "f" else "numbers", array.dtype)
    if array.ndim not in [text.count(",") + 1 for text in axes] or not array.size:
        expected = f"axes {' or '.join(axes)}, not empty"
        raise ShapeError(op, argument, expected, f"shape {array.shape}", way_out)
    return array


def check_size(op: str, argument: str, tiles: Array) -> None:
    """An error where tiles (..., height, width) are more than can be drawn."""
    *grid, height, width = tiles.shape
    if math.prod(grid) > MAX_TILES or tiles.size > MAX_PIXELS:
        raise ArgumentError(
            op,
            argument,
            f"at most {MAX_TILES} tiles of {MAX_PIXELS:,} pixels together",
            f"{math.prod(grid)} of {height} x {width}, shape {tiles.shape}",
            f"draw a part: {argument}[:64, :16]",
        )


def sheet(tiles: Array, columns: int, gap: Array) -> Array:
    """Tiles (T, H, W, channels) row by row in a grid, a pixel of the colour `gap` around each."""
    number, height, width, channels = tiles.shape
    rows = -(-number // columns)
    made = np.empty((rows * (height + 1) + 1, columns * (width + 1) + 1, channels), tiles.dtype)
    made[...] = gap
    for k, tile in enumerate(tiles):
        top, left = k // columns * (height + 1) + 1, k % columns * (width + 1) + 1
        made[top : top + height, left : left + width] = tile
    return made


def draw_tiles(
    numbers: Array, colours: Any, columns: int, size: tuple[float, float], title: str
) -> tuple[Any, Any]:
    """A figure of tiles (T, H, W), each of `size` in inches, and its axes."""
    finite = np.isfinite(numbers)
    rgba = colours.to_rgba(np.where(finite, numbers, 0.0).ravel()).reshape(*numbers.shape, 4)
    rgba[~finite] = BROKEN
    across, down = size[0] * columns, size[1] * math.ceil(len(numbers) / columns)
    figure = new_figure(max(across, 2.0) + 1.3, max(down, 1.5) + 0.5)
    axes = figure.subplots()
    axes.imshow(sheet(rgba, columns, np.array(GAP)), interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
    return figure, axes


def scale_of(numbers: Array, signed: bool) -> Any:
    """Colours for all numbers: symmetric about 0, or from 0 upwards."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)) or 1.0
    low, colours = (-largest, "RdBu_r") if signed else (0.0, "viridis")
    return ScalarMappable(Normalize(low, largest), colours)
