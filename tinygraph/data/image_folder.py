"""image_folder: a folder of images, decoded when they are asked for.

FOLDER/CLASS/*.png    images with labels; the classes are the folders' names, sorted
FOLDER/*.png          images without labels
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.checks import one_of, whole
from tinygraph.data.dataset import BatchedDataset, chosen, sample
from tinygraph.data.files import fault
from tinygraph.data.images import (
    MAX_PIXELS,
    MODES,
    SUFFIXES,
    decode,
    pillow,
    pixels,
    unit_interval,
)
from tinygraph.errors import ArgumentError, ShapeError
from tinygraph.shapes import Array

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
    ) -> None:
        self.paths = list(paths)
        self.labels = labels
        self.classes = classes
        self.name = name
        self.size, self.mode, self.max_pixels = size, mode, max_pixels

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
    path: str | Path,
    size: int | tuple[int, int] | None = None,
    mode: str = "RGB",
    max_pixels: int = MAX_PIXELS,
) -> ImageFolder:
    """The images of a folder: in a folder for each class, or without labels.

    Parameters
    ----------
    path : str or Path
        Holds either folders, one for each class, or images (.png, .jpg, .jpeg, .bmp).  Names that
        start with a dot and other files are passed over.
    size : int or (int, int), optional
        Resize every image to this height and width, bicubic.
    mode : {"RGB", "L"}
        Colour, or grey levels.  Images of any other kind are converted; transparency is dropped.
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
    folder = Path(path).expanduser()
    paths, labels, classes = _scan(folder)
    return ImageFolder(
        paths, np.array(labels, np.int64), classes, folder.name, height_width, mode, max_pixels
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


def _scan(folder: Path) -> tuple[list[Path], list[int], tuple[str, ...] | None]:
    """The images of a folder, their labels, and the classes."""
    images, folders = _entries(folder)
    if images and folders:
        raise fault(
            "image_folder",
            folder,
            "images, or a folder for each class",
            f"both: {images[0].name} beside {folders[0].name}",
            "move the images into folders, or the folders elsewhere",
        )
    if images:
        return images, [UNLABELLED] * len(images), None
    if not folders:
        raise fault(
            "image_folder",
            folder,
            f"images ({', '.join(sorted(SUFFIXES))})",
            "none",
            "check the path",
        )
    labels: list[int] = []
    for label, inner in enumerate(folders):
        found, _ = _entries(inner)
        if not found:
            raise fault(
                "image_folder",
                inner,
                "at least one image of this class",
                "none",
                "remove the empty folder",
            )
        images += found
        labels += [label] * len(found)
    return images, labels, tuple(inner.name for inner in folders)


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """The images and the folders in a folder, sorted by name."""
    try:
        entries = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
        images = [p for p in entries if p.suffix.lower() in SUFFIXES and p.is_file()]
        return images, [p for p in entries if p.is_dir()]
    except OSError as error:
        raise fault(
            "image_folder", folder, "a folder", error.strerror or str(error), "check the path"
        ) from None
