"""The filters of a convolution as a grid of tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.errors import ArgumentError, DtypeError, ShapeError, explain
from tinygraph.shapes import Array
from tinygraph.show.figures import new_figure, save
from tinygraph.show.paths import writable
from tinygraph.tensor import Tensor

MAX_TILES = 4096


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
        More than 4096 tiles, or no such format or folder.

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
    axes.imshow(_sheet(rgba, ~np.isfinite(w), rows, columns), interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(f"{number} filters, {channels} input channel{'s' * (channels != 1)}", fontsize=9)
    figure.colorbar(colours, ax=axes, label="weight")
    return save(figure, target)


def _checked(weights: Any) -> Array:
    """The weights as float64, or an error."""
    w = weights.numpy() if isinstance(weights, Tensor) else np.asarray(weights)
    if w.dtype.kind != "f":
        raise DtypeError(
            explain("show.filters", "weights", "floats", w.dtype, "convert with .astype('float32')")
        )
    if w.ndim != 4 or not w.size:
        raise ShapeError(
            explain("show.filters", "weights", "axes (O, C, KH, KW), none of them empty",
                    f"shape {w.shape}", "a linear layer's rows: w.reshape(O, 1, H, W)")
        )  # fmt: skip
    if w.shape[0] * w.shape[1] > MAX_TILES:
        raise ArgumentError(
            explain("show.filters", "weights", f"at most {MAX_TILES} filters x channels",
                    f"shape {w.shape}", "draw a part: weights[:64, :16]")
        )  # fmt: skip
    return w.astype(np.float64)


def _sheet(tiles: Array, broken: Array, rows: int, columns: int) -> Array:
    """Coloured tiles (O, C, KH, KW, 4) in a grid, a pixel of light grey apart."""
    tiles = np.where(broken[..., None], (0.0, 0.0, 0.0, 1.0), tiles)
    kh, kw = tiles.shape[2:4]
    tiles = tiles.reshape(-1, kh, kw, 4)  # (O*C, KH, KW, 4)
    sheet = np.full((rows * (kh + 1) + 1, columns * (kw + 1) + 1, 4), (0.75, 0.75, 0.75, 1.0))
    for k, tile in enumerate(tiles):
        top, left = k // columns * (kh + 1) + 1, k % columns * (kw + 1) + 1
        sheet[top : top + kh, left : left + kw] = tile
    return sheet
