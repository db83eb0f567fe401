"""Arrays as PNG, written with the standard library alone.

The file is a signature and three chunks: the header, the rows (each behind a byte 0: no filter)
compressed, and the end.  A chunk is its length, its kind, its data and their CRC-32.

Source: "Portable Network Graphics (PNG) specification", ISO/IEC 15948:2004.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from tinygraph.engine import Array

GREY, RGB = 0, 2  # colour types
MIDDLE, BLUE, RED = (247, 247, 247), (33, 102, 172), (178, 24, 43)  # of `diverging`


def png(pixels: Array) -> bytes:
    """The file of an image of bytes, (H, W, 1) or (H, W, 3)."""
    height, width, channels = pixels.shape
    header = struct.pack(">2I5B", width, height, 8, RGB if channels == 3 else GREY, 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def png_uri(pixels: Array) -> str:
    """The image as an address that contains it: for a page that loads nothing."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def diverging(numbers: Array, largest: float) -> Array:
    """Bytes (..., 3): blue at -largest, nearly white at 0, red at largest, black for NaN.

    >>> diverging(np.array([-1.0, 0.0, 1.0, np.nan]), 1.0).tolist()
    [[33, 102, 172], [247, 247, 247], [178, 24, 43], [0, 0, 0]]
    """
    finite = np.isfinite(numbers)
    t = np.clip(np.where(finite, numbers, 0) / largest, -1, 1)[..., None]
    end = np.where(t < 0, BLUE, RED)
    colours = np.rint(MIDDLE + np.abs(t) * (end - np.array(MIDDLE))).astype(np.uint8)
    colours[~finite] = 0
    return colours
