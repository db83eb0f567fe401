"""What the layers of a network make of one input: collected, and drawn as a grid of maps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, writable
from tinygraph.engine import Array
from tinygraph.ops.common import documented
from tinygraph.show.figures import PICTURE, drawable, save
from tinygraph.show.sheet import check_size, checked_tiles, draw_tiles, scale_of

Scale: TypeAlias = Literal["common", "each"]


@documented(PICTURE)
def feature_maps(
    activations: Any,
    path: AnyPath = "feature_maps.png",
    *,
    sample: int = 0,
    scale: Scale = "common",
) -> Path:
    """Draw the channels of one layer's output, a tile for each, in rows from the top left.

    Maps without negative numbers go from dark (0) to bright; with some, blue is negative, white
    is 0 and red is positive.  What is not finite is black.

    Parameters
    ----------
    activations : Tensor or array (C, H, W) or (N, C, H, W)
        One layer's output; `show.activations` collects those of a model.
    sample : int
        Which of N samples.
    scale : {"common", "each"}
        One colour scale for all maps, so that they can be compared; or for each map one of its own,
        from its smallest to its largest number, so that faint ones show too.

    Raises
    ------
    ShapeError
        Neither three nor four axes, or nothing in them.
    DtypeError
        No numbers.
    ArgumentError
        ... No such sample or scale, or more than 4096 maps or 16 million pixels.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> maps = tg.relu(tg.conv2d(tg.randn(1, 1, 8, 8), tg.randn(6, 1, 3, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.feature_maps(maps, f"{folder}/maps.png").name
    'maps.png'
    """
    target = writable("show.feature_maps", path, (".svg", ".png", ".pdf"))
    if scale not in ("common", "each"):
        raise ArgumentError("show.feature_maps", "scale", "'common' or 'each'", scale)
    maps = checked_tiles(
        "show.feature_maps",
        "activations",
        activations,
        ("(C, H, W)", "(N, C, H, W)"),
        "features without an image have no maps to draw",
    )
    if maps.ndim == 4:
        if not 0 <= sample < len(maps):
            raise ArgumentError("show.feature_maps", "sample", f"from 0 to {len(maps) - 1}", sample)
        maps = maps[sample]
    check_size("show.feature_maps", "activations", maps)
    maps = drawable(maps)
    number, height, width = maps.shape
    columns = min(number, max(1, round(math.sqrt(1.4 * number * height / width))))
    inches = min(max(max(height, width) / 40, 0.6), 1.6) / max(height, width)  # for a pixel
    drawn = _each_from_0_to_1(maps) if scale == "each" else maps
    colours = scale_of(drawn, signed=bool((drawn < 0).any()))
    title = f"{number} map{'s' * (number != 1)} of {height} × {width}"
    figure, axes = draw_tiles(drawn, colours, columns, (inches * width, inches * height), title)
    if scale == "common":
        figure.colorbar(colours, ax=axes, label="activation")
    else:
        bar = figure.colorbar(colours, ax=axes, label="activation of each map", ticks=[0, 1])
        bar.ax.set_yticklabels(["min", "max"])
    return save(figure, target)


def _each_from_0_to_1(maps: Array) -> Array:
    """Each map by its own smallest and largest number; a constant one is 0."""
    finite = np.isfinite(maps)
    low = np.where(finite, maps, np.inf).min(axis=(1, 2), keepdims=True)
    span = np.where(finite, maps, -np.inf).max(axis=(1, 2), keepdims=True) - low
    usable = np.isfinite(span) & (span > 0)
    above = np.where(finite, maps, 0.0) - low
    return np.where(finite, np.where(usable, above, 0) / np.where(usable, span, 1), np.nan)
