"""The filters of a convolution as a grid of tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.errors import DtypeError, ShapeError
from tinygraph.shapes import Array
from tinygraph.show.figures import new_figure, save
from tinygraph.show.labels import as_array
from tinygraph.show.paths import writable
from tinygraph.show.sheet import check_size, sheet

BLACK, GREY = (0.0, 0.0, 0.0, 1.0), (0.75, 0.75, 0.75, 1.0)


def filters(weights: Any, path: str | Path = "filters.png") -> Path:
    """Draw the weights of a convolution, one tile for each filter and input channel.

    All tiles share one colour scale, symmetric about 0: blue is negative, white is 0, red is
    positive, and what is not finite is black.  With several input channels a row of the grid is a
    filter, where that fits; with one, the filters wrap.

    Parameters
    ----------
    weights : Tensor or array (O, C, KH, KW)
        O filters over C input channels.
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ShapeError
        `weights` does not have four axes, or is empty.
    DtypeError
        `weights` does not hold floats.
    ArgumentError
        More than 4096 tiles or 16 million weights, or no such format or folder.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.filters(tg.randn(8, 1, 3, 3), f"{folder}/filters.svg").name
    'filters.svg'
    """
    target = writable("show.filters", path, (".svg", ".png", ".pdf"))
    w = _checked(weights)
    number, channels = w.shape[:2]
    columns = channels if 1 < channels <= 32 else math.ceil(math.sqrt(number * channels))
    rows = math.ceil(number * channels / columns)

    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    finite = np.abs(w[np.isfinite(w)])
    scale = float(finite.max(initial=0.0)) or 1.0
    colours = ScalarMappable(Normalize(-scale, scale), "RdBu_r")
    figure = new_figure(max(0.4 * columns, 2.0) + 1.2, max(0.4 * rows, 1.4) + 0.5)
    axes = figure.subplots()
    rgba = colours.to_rgba(np.where(np.isfinite(w), w, 0).ravel()).reshape(*w.shape, 4)
    rgba[~np.isfinite(w)] = BLACK
    tiles = rgba.reshape(-1, *w.shape[2:], 4)  # (O*C, KH, KW, 4)
    axes.imshow(sheet(tiles, columns, np.array(GREY)), interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(f"{number} filters, {channels} input channel{'s' * (channels != 1)}", fontsize=9)
    figure.colorbar(colours, ax=axes, label="weight")
    return save(figure, target)


def _checked(weights: Any) -> Array:
    """The weights as float64, or an error."""
    w = as_array(weights)
    if w.dtype.kind != "f":
        raise DtypeError(
            "show.filters", "weights", "floats", w.dtype, "convert with .astype('float32')"
        )
    if w.ndim != 4 or not w.size:
        raise ShapeError(
            "show.filters",
            "weights",
            "axes (O, C, KH, KW), none of them empty",
            f"shape {w.shape}",
            "a linear layer's rows: w.reshape(O, 1, H, W)",
        )
    check_size("show.filters", "weights", (w.shape[0] * w.shape[1], *w.shape[2:]), w.shape)
    return w.astype(np.float64)
