"""Image files, decoded by Pillow.  A file is not trusted: its size is known before its pixels are.

image   uint8 (C, H, W), C = 3 for the mode "RGB" and 1 for "L" (grey levels)
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.data.files import library
from tinygraph.errors import DatasetError
from tinygraph.shapes import Array

MODES = ("RGB", "L")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp"}
MAX_PIXELS = 1 << 26  # 8,192 by 8,192: 200 MB decoded

_FORMATS = ("PNG", "JPEG", "BMP")  # no other decoder is offered the bytes, whatever the name says


def pillow(op: str) -> Any:
    """Pillow's module Image, or DatasetError where Pillow is not installed."""
    return library(op, "PIL.Image", "Pillow", "reads and resizes images")


def decode(
    op: str, name: str, source: Path | bytes, mode: str = "RGB", max_pixels: int = MAX_PIXELS
) -> Any:
    """One image as a Pillow image of that mode; DatasetError with its name where that fails.

    Transparency is dropped, and 16-bit grey levels are cut to their high 8 bits.
    """
    library = pillow(op)
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with library.open(stream, formats=_FORMATS) as image:
            width, height = image.size  # from the header: nothing is decoded yet
            if width * height <= max_pixels:
                return _converted(library, image, mode)
    except (MemoryError, KeyboardInterrupt):
        raise
    except FileNotFoundError:
        gone = "nothing at that path", "check the path; images in use are not removed"
        raise DatasetError(op, name, "a file", *gone) from None
    except Exception as error:  # a decoder may raise anything on damaged bytes
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DatasetError(
            op,
            name,
            "an intact image (PNG, JPEG, BMP)",
            reason,
            "restore the file, or take it out of the folder",
        ) from None
    raise DatasetError(
        op,
        name,
        f"at most {max_pixels} pixels",
        f"{width} by {height}, as its header says",
        "shrink the image",
    )


def pixels(image: Any) -> Array:
    """The pixels of a Pillow image of mode RGB or L: uint8 (C, H, W)."""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)


def unit_interval(array: Array) -> Array:
    """Bytes as float32 from 0 to 1."""
    return np.divide(array, 255, dtype=np.float32)


def _converted(library: Any, image: Any, mode: str) -> Any:
    if image.mode.startswith("I"):  # Pillow would clip at 255
        image = library.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert(mode)  # decodes; a copy that outlives the file
