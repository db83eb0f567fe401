"""Image files, decoded by Pillow.  A file is not trusted: its size is known before its pixels are.

image   uint8 (C, H, W), C = 3 for the mode "RGB" and 1 for "L" (grey levels)
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import DatasetError
from tinygraph.data.files import library
from tinygraph.engine import Array

MODES = ("RGB", "L")
MAX_PIXELS = 1 << 26  # 8,192 by 8,192: 200 MB decoded

# These are known by their first bytes, whatever the name says; others must have the suffix.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO", "QOI")
_REFUSED = {"EPS", "WMF", "BUFR", "GRIB", "HDF5", "MPEG"}  # run Ghostscript, or have no decoder
_UPRIGHT = {  # what a camera that was held otherwise has noted, and what turns its picture
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_ORIENTATION = 0x0112  # its tag in EXIF


def pillow(op: str) -> Any:
    """Pillow's module Image, or DatasetError where Pillow is not installed."""
    return library(op, "PIL.Image", "Pillow", "reads and resizes images")


def formats_by_suffix() -> dict[str, str]:
    """Pillow's name of the format, for each suffix of what it reads here.

    >>> found = formats_by_suffix()
    >>> found[".jpg"], found[".webp"], ".txt" in found, ".eps" in found
    ('JPEG', 'WEBP', False, False)
    """
    library = pillow("image_folder")
    known = library.registered_extensions().items()  # of plugins too
    opened = library.OPEN.keys() | {"MPO"}  # of which JPEG's decoder takes care
    return {suffix: name for suffix, name in known if name in opened and name not in _REFUSED}


def _offered(library: Any, name: str, formats: Sequence[str]) -> Sequence[str]:
    """The decoders that a file of that name is offered to."""
    if formats:
        return formats
    by_suffix = formats_by_suffix().get(Path(name).suffix.lower())
    known = dict.fromkeys([*_FORMATS, *([by_suffix] if by_suffix else [])])
    return [name for name in known if name in library.OPEN]


def decode(
    op: str,
    name: str,
    source: Path | bytes,
    mode: str = "RGB",
    max_pixels: int = MAX_PIXELS,
    formats: Sequence[str] = (),
) -> Any:
    """One image as a Pillow image of that mode; DatasetError with its name where that fails.

    Turned upright as its EXIF says.  Transparency is dropped, 16-bit grey levels are cut to their
    high 8 bits, and of several pictures in a file the first is taken.  Other `formats` than those
    that are named, if any, are offered to no decoder.
    """
    library = pillow(op)
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with _opened(library, stream, _offered(library, name, formats)) as image:
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
            "an intact image (PNG, JPEG, BMP, GIF, WEBP, TIFF, ...)",
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


@contextmanager
def _opened(library: Any, source: Path | io.BytesIO, formats: Sequence[str]) -> Iterator[Any]:
    """The image as `library.open` gives it, but for Pillow's own limit: `max_pixels` is ours.

    That limit is one variable for all threads of the program, who may rely on it.
    """
    with source.open("rb") if isinstance(source, Path) else source as stream:
        prefix = stream.read(16)
        for name in formats:
            factory, accepts = library.OPEN[name]
            found = accepts is None or accepts(prefix)
            if not found or isinstance(found, str):  # a text says what is missing to read it
                continue
            stream.seek(0)
            try:
                image = factory(stream, str(source) if isinstance(source, Path) else None)
            except (SyntaxError, IndexError, TypeError, struct.error):  # none of its kind
                continue
            with image:
                yield image
            return
        raise library.UnidentifiedImageError("cannot identify the image file")


def pixels(image: Any) -> Array:
    """The pixels of a Pillow image of mode RGB or L: uint8 (C, H, W)."""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)


def unit_interval(array: Array) -> Array:
    """Bytes as float32 from 0 to 1."""
    return np.divide(array, 255, dtype=np.float32)


def _converted(library: Any, image: Any, mode: str) -> Any:
    image.load()
    image = _upright(library, image)
    if image.mode.startswith("I"):  # Pillow would clip at 255
        levels = np.asarray(image)
        if levels.min() < 0 or levels.max() > 0xFFFF:
            raise ValueError(f"grey levels from {levels.min()} to {levels.max()}, not of 16 bits")
        image = library.fromarray((levels >> 8).astype(np.uint8))
    if image.mode == "F":  # from 0 to 1, to 255 or to anything else
        raise ValueError("floating-point levels, whose range is not known")
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # else Pillow warns
    return image.convert(mode)  # a copy that outlives the file


def _upright(library: Any, image: Any) -> Any:
    """As the photographer saw it."""
    try:
        turn = _UPRIGHT.get(image.getexif().get(_ORIENTATION))
    except Exception:  # damaged, beside pixels that are not
        turn = None
    return image.transpose(library.Transpose[turn]) if turn else image
