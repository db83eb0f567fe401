"""image_folder: a folder of images, decoded when they are asked for; see image_files.py."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, ShapeError, as_path, one_of, whole
from tinygraph.data.dataset import BatchedDataset, chosen, sample
from tinygraph.data.image_files import Scan
from tinygraph.data.images import MAX_PIXELS, MODES, decode, pillow, pixels, unit_interval
from tinygraph.engine import Array

UNLABELLED = -1


class ImageFolder(BatchedDataset):
    """Paths of images and their labels; made by `image_folder`.

    Indexing decodes: (inputs, label) at an int, (stacked inputs, labels) at a slice or an array of
    ints.

    Attributes
    ----------
    paths : list of Path
        The image files.
    labels : array of int64 (N,)
        The class of each; -1, which no loss takes for a class, where the folder has no classes.
    classes : tuple of str, or None
        The name of each class number.
    name : str
        The folder's name.
    left_out : dict from str to int
        How many files of the folder are not among the images: by suffix, `hidden`, or `in folders
        inside a class`.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        labels: Array,
        classes: tuple[str, ...] | None,
        name: str,
        size: tuple[int, int] | None,
        mode: str,
        max_pixels: int,
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        self.paths = list(paths)
        self.labels = labels
        self.classes = classes
        self.name = name
        self.size, self.mode, self.max_pixels = size, mode, max_pixels
        self.left_out = dict(left_out or {})

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        """(inputs, labels) at an int, a slice or an array of ints."""
        places = chosen(index, len(self))
        if not places.ndim:
            return self._image(int(places)), self.labels[places]
        images = [sample(self, int(i))[0] for i in places]
        for i, image in zip(places, images, strict=True):
            if image.shape != images[0].shape:
                raise ShapeError(
                    "image_folder",
                    str(self.paths[i]),
                    f"the shape {images[0].shape} of "
                    f"{self.paths[places[0]].name}, for both are in one batch",
                    image.shape,
                    "pass size=, or crop with a transform",
                )
        return np.stack(images) if images else np.empty(0, np.float32), self.labels[places]

    def _image(self, i: int) -> Array:
        """Image i: float32 (C, H, W) from 0 to 1."""
        path = self.paths[i]
        image = decode("image_folder", str(path), path, self.mode, self.max_pixels)
        if self.size is not None:
            height, width = self.size
            resampling = pillow("image_folder").Resampling.BICUBIC
            image = image.resize((width, height), resampling)
        return unit_interval(pixels(image))

    def __repr__(self) -> str:
        classes = f" in {len(self.classes)} classes" if self.classes else ""
        return f"ImageFolder({self.name}: {len(self)} images{classes})"


def image_folder(
    path: AnyPath,
    size: int | tuple[int, int] | None = None,
    mode: str = "RGB",
    max_pixels: int = MAX_PIXELS,
) -> ImageFolder:
    """The images of a folder: in a folder for each class, or without labels.

    Parameters
    ----------
    path : str or Path
        Holds either folders, one for each class, or images: all that Pillow reads, by suffix, such
        as .png, .jpg, .webp, .gif, .tif.  Names that start with a dot, `__MACOSX` and their like
        are passed over.  Where another file may be an image (.heic), or images lie in a folder
        inside a class, a warning says how many are left out; `left_out` counts all.
    size : int or (int, int), optional
        Resize every image to this height and width, bicubic.
    mode : {"RGB", "L"}
        Colour, or grey levels.  Images of any other kind are converted: transparency is dropped, 16
        bits are cut to the high 8, of an animation the first picture is taken.  A photo is turned
        upright as its EXIF says.
    max_pixels : int
        Refuse an image whose header declares more, before it is decoded.

    Returns
    -------
    ImageFolder
        Inputs (C, H, W), float32 from 0 to 1; labels int64, -1 where the folder has no classes.
        Classes, and the images of each, are sorted by name.

    Raises
    ------
    DatasetError
        No folder, no image in it, or in a class; images beside folders; Pillow is not installed.
        When an image is asked for: it is corrupt or too large; the message names the file.
    ShapeError
        When a batch is asked for: images of several shapes.
    ArgumentError
        A bad size, mode or max_pixels.

    Examples
    --------
    >>> import pathlib, tempfile, tinygraph as tg
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for animal in ("cat", "dog"):
    ...         (pathlib.Path(folder) / animal).mkdir()
    ...         Image.new("RGB", (6, 4), "red").save(f"{folder}/{animal}/1.png")
    ...     data = tg.data.image_folder(folder)
    ...     image, label = data[1]
    >>> data.classes, image.shape, label
    (('cat', 'dog'), (3, 4, 6), np.int64(1))
    """
    one_of("image_folder", "mode", mode, MODES)
    whole("image_folder", "max_pixels", max_pixels)
    height_width = None if size is None else height_and_width("image_folder", "size", size)
    pillow("image_folder")
    folder = as_path("image_folder", "path", path)
    found = Scan(folder)
    labels = [UNLABELLED] * len(found.paths) if found.labels is None else found.labels
    options = (height_width, mode, max_pixels, +found.left_out)
    return ImageFolder(
        found.paths, np.array(labels, np.int64), found.classes, folder.name, *options
    )


def height_and_width(op: str, argument: str, size: Any) -> tuple[int, int]:
    """A size as (height, width); one int gives both."""
    try:
        pair = size if isinstance(size, (tuple, list)) else (size, size)
        height, width = map(operator.index, pair)
        if min(height, width) >= 1:
            return height, width
    except (TypeError, ValueError):
        pass
    raise ArgumentError(op, argument, "an int of at least 1, or two", repr(size))
