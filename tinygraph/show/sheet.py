"""Small pictures in a grid."""

from __future__ import annotations

import numpy as np

from tinygraph.errors import ArgumentError
from tinygraph.shapes import Array, Shape

MAX_TILES = 4096
MAX_PIXELS = 16_000_000  # of all tiles together


def check_size(op: str, argument: str, size: Shape, shape: Shape) -> None:
    """An error where `size`, (tiles, height, width), is more than can be drawn."""
    tiles, height, width = size
    if tiles > MAX_TILES or tiles * height * width > MAX_PIXELS:
        raise ArgumentError(
            op,
            argument,
            f"at most {MAX_TILES} tiles of {MAX_PIXELS:,} pixels together",
            f"{tiles} of {height} x {width}, shape {shape}",
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
