"""What the layers of a network make of one input: collected, and drawn as a grid of maps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from tinygraph.errors import ArgumentError, DtypeError, ShapeError
from tinygraph.shapes import Array
from tinygraph.show.figures import new_figure, save
from tinygraph.show.labels import as_array
from tinygraph.show.paths import writable
from tinygraph.show.sheet import check_size, sheet

Scale: TypeAlias = Literal["common", "each"]

BROKEN = (0.0, 0.0, 0.0, 1.0)  # what is not finite, as in filters
GAP = (0.6, 0.6, 0.6, 1.0)


def feature_maps(
    activations: Any,
    path: str | Path = "feature_maps.png",
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
    path : str or Path
        `.svg`, `.png` or `.pdf`.
    sample : int
        Which of N samples.
    scale : {"common", "each"}
        One colour scale for all maps, so that they can be compared; or for each map one of its own,
        from its smallest to its largest number, so that faint ones show too.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ShapeError
        Neither three nor four axes, or nothing in them.
    DtypeError
        No numbers.
    ArgumentError
        No such sample, scale, format or folder, or more than 4096 maps or 16 million pixels.

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
    maps = _checked(activations, sample)
    number, height, width = maps.shape
    columns = min(number, max(1, round(math.sqrt(1.4 * number * height / width))))
    rows = math.ceil(number / columns)
    tile = min(max(max(height, width) / 40, 0.6), 1.6) / max(height, width)  # inches for a pixel

    across, down = tile * width * columns, tile * height * rows
    figure = new_figure(max(across, 2.2) + 1.3, max(down, 1.6) + 0.5)
    axes = figure.subplots()
    rgba, colours = _coloured(maps, scale)
    axes.imshow(sheet(rgba, columns, np.array(GAP)), interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(f"{number} map{'s' * (number != 1)} of {height} × {width}", fontsize=9)
    if scale == "common":
        figure.colorbar(colours, ax=axes, label="activation")
    else:
        label = "activation, each map by itself"
        bar = figure.colorbar(colours, ax=axes, label=label, ticks=[0, 1])
        bar.ax.set_yticklabels(["min", "max"])
    return save(figure, target)


def _checked(activations: Any, sample: int) -> Array:
    """The maps of one sample, (C, H, W), as float64; or an error."""
    maps = as_array(activations)
    if maps.dtype.kind not in "fiu":
        raise DtypeError("show.feature_maps", "activations", "numbers", maps.dtype)
    if maps.ndim not in (3, 4) or not maps.size:
        raise ShapeError(
            "show.feature_maps",
            "activations",
            "axes (C, H, W) or (N, C, H, W), not empty",
            f"shape {maps.shape}",
            "features without an image have no maps to draw",
        )
    if maps.ndim == 4:
        if not 0 <= sample < len(maps):
            raise ArgumentError("show.feature_maps", "sample", f"from 0 to {len(maps) - 1}", sample)
        maps = maps[sample]
    check_size("show.feature_maps", "activations", maps.shape, maps.shape)
    return maps.astype(np.float64)


def _coloured(maps: Array, scale: Scale) -> tuple[Array, Any]:
    """The maps in colours (C, H, W, 4), and the scale that says what a colour means."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    finite = np.isfinite(maps)
    numbers = np.where(finite, maps, 0.0)
    if scale == "each":
        low = np.where(finite, maps, np.inf).min(axis=(1, 2), keepdims=True)
        high = np.where(finite, maps, -np.inf).max(axis=(1, 2), keepdims=True)
        span = high - low
        usable = np.isfinite(span) & (span > 0)  # a constant map has the lowest colour
        numbers = np.where(usable, numbers - low, 0) / np.where(usable, span, 1)
        colours = ScalarMappable(Normalize(0, 1), "viridis")
    else:
        largest = float(np.abs(numbers).max()) or 1.0
        signed = numbers.min() < 0
        colours = ScalarMappable(
            Normalize(-largest if signed else 0.0, largest), "RdBu_r" if signed else "viridis"
        )
    rgba = colours.to_rgba(numbers.ravel()).reshape(*maps.shape, 4)
    rgba[~finite] = BROKEN
    return rgba, colours
