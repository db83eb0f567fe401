"""The filters of a convolution as a grid of tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.ops.shared.docstrings import documented
from tinygraph.show.figures import PICTURE, save
from tinygraph.show.paths import writable
from tinygraph.show.sheet import check_size, checked_tiles, draw_tiles, scale_of


@documented(PICTURE)
def filters(weights: Any, path: str | Path = "filters.png") -> Path:
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
    w = w.astype(np.float64)
    number, channels = w.shape[:2]
    columns = channels if 1 < channels <= 32 else math.ceil(math.sqrt(number * channels))
    colours = scale_of(w, signed=True)
    title = f"{number} filters, {channels} input channel{'s' * (channels != 1)}"
    tiles = w.reshape(-1, *w.shape[2:])  # (O*C, KH, KW)
    figure, axes = draw_tiles(tiles, colours, columns, (0.4, 0.4), title)
    figure.colorbar(colours, ax=axes, label="weight")
    return save(figure, target)
