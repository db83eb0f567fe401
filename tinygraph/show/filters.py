"""The filters of a convolution as a grid of tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, writable
from tinygraph.engine import Array
from tinygraph.ops.common import documented
from tinygraph.show.figures import PICTURE, drawable, save
from tinygraph.show.png import diverging
from tinygraph.show.sheet import check_size, checked_tiles, draw_tiles, scale_of, sheet


@documented(PICTURE)
def filters(weights: Any, path: AnyPath = "filters.png") -> Path:
    """Draw the weights of a convolution, one tile for each filter and input channel.

    All tiles share one colour scale, symmetric about 0: blue is negative, white is 0, red is
    positive, and what is not finite is black.  With several input channels a row of the grid is a
    filter, where that fits; with one, the filters wrap.

    Parameters
    ----------
    weights : Tensor or array (O, C, KH, KW)
        O filters over C input channels.

    Raises
    ------
    ShapeError
        `weights` does not have four axes, or is empty.
    DtypeError
        `weights` does not hold floats.
    ArgumentError
        ... More than 4096 tiles or 16 million weights.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.filters(tg.randn(8, 1, 3, 3), f"{folder}/filters.svg").name
    'filters.svg'
    """
    target = writable("show.filters", path, (".svg", ".png", ".pdf"))
    w = checked_tiles(
        "show.filters",
        "weights",
        weights,
        ("(O, C, KH, KW)",),
        "a linear layer's rows: w.reshape(O, 1, H, W)",
        kinds="f",
    )
    check_size("show.filters", "weights", w)
    w = drawable(w)
    number, channels = w.shape[:2]
    columns = channels if 1 < channels <= 32 else math.ceil(math.sqrt(number * channels))
    colours = scale_of(w, signed=True)
    title = f"{number} filters, {channels} input channel{'s' * (channels != 1)}"
    tiles = w.reshape(-1, *w.shape[2:])  # (O*C, KH, KW)
    figure, axes = draw_tiles(tiles, colours, columns, (0.4, 0.4), title)
    figure.colorbar(colours, ax=axes, label="weight")
    return save(figure, target)


MOST_FILTERS, MOST_CHANNELS = 16, 16  # where a filter has a row of its own
BETWEEN = np.array([150, 150, 150], np.uint8)


def filter_pixels(weights: Array) -> tuple[Array, tuple[int, int], float]:
    """The first filters of a convolution (O, C, KH, KW) as bytes (H, W, 3), a tile for a channel.

    Also how many filters and channels are shown, and what the darkest colour means.
    """
    channels, height, width = weights.shape[1:]
    if channels <= 3:
        part, columns = weights[:64], (8, 8, 9)[channels - 1]
    else:  # a row for each filter
        part = weights[:MOST_FILTERS, :MOST_CHANNELS]
        columns = part.shape[1]
    finite = np.abs(weights[np.isfinite(weights)].astype(np.float64))
    largest = float(finite.max(initial=0.0)) or 1.0
    colours = diverging(part.astype(np.float64), largest).reshape(-1, height, width, 3)
    shown = (part.shape[0], part.shape[1])
    return sheet(colours, min(columns, len(colours)), BETWEEN), shown, largest
