"""Which files of a folder are images, of which classes, and what is left out, and why.

    FOLDER/CLASS/*.png    images with labels; the classes are the folders' names, sorted
    FOLDER/*.png          images without labels

An image is what Pillow reads, by the suffix of its name.  What systems leave behind is neither an
image nor a class: names that start with a dot (`.DS_Store`, `._photo.jpg`, `.ipynb_checkpoints`),
`__MACOSX`, `Thumbs.db` and their like.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

from tinygraph.base import DatasetError
from tinygraph.data.files import fault
from tinygraph.data.images import formats_by_suffix

HIDDEN, INSIDE = "hidden", "in folders inside a class"
CONVERT = "convert them to PNG or JPEG"

_LEFT_BEHIND = {"__macosx", "__pycache__", "@eadir", "#recycle", "$recycle.bin", "lost+found"}
_LEFT_BEHIND |= {"thumbs.db", "ehthumbs.db", "desktop.ini", "system volume information"}
_BESIDE = {HIDDEN, "without a suffix"}  # what lies beside images, and nobody takes for one
_BESIDE |= {".txt", ".md", ".rst", ".html", ".log", ".csv", ".tsv", ".json", ".jsonl", ".xml"}
_BESIDE |= {".yaml", ".yml", ".toml", ".py", ".ipynb", ".npy", ".npz", ".mat", ".pkl", ".parquet"}
_BESIDE |= {".zip", ".tar", ".gz", ".md5", ".sha256"}


class Scan:
    """The images of a folder, sorted by class and name.

    Attributes
    ----------
    paths : list of Path
    labels : list of int, or None
        The class of each; None where the folder has no classes.
    classes : tuple of str, or None
    left_out : Counter
        How many files are not among the images, by suffix or reason.

    Raises
    ------
    DatasetError
        No folder, no image in it, or in a class; images beside folders.
    """

    def __init__(self, folder: Path) -> None:
        self.left_out: Counter[str] = Counter()
        self.labels: list[int] | None = None
        self.classes: tuple[str, ...] | None = None
        self.paths, folders = entries(folder, self.left_out)
        if self.paths and folders:
            got = f"both: {self.paths[0].name} beside {folders[0].name}"
            way_out = "move the images into folders, or the folders elsewhere"
            raise fault("image_folder", folder, "images, or a folder for each class", got, way_out)
        if folders:
            self._take_classes(folders)
        elif not self.paths:
            expected = "images (.png, .jpg, .webp, .gif, .tif and others that Pillow reads)"
            raise _none(folder, expected, self.left_out, "check the path")
        _tell(folder, self.left_out, len(self.paths))

    def _take_classes(self, folders: list[Path]) -> None:
        self.classes = tuple(folder.name for folder in folders)
        self.labels = []
        for label, folder in enumerate(folders):
            left_out: Counter[str] = Counter()
            images, inner = entries(folder, left_out)
            left_out[INSIDE] += sum(map(_images_below, inner))
            if not images:
                expected = "at least one image of this class"
                raise _none(folder, expected, left_out, "remove the empty folder")
            self.paths += images
            self.labels += [label] * len(images)
            self.left_out += left_out


def entries(folder: Path, left_out: Counter[str]) -> tuple[list[Path], list[Path]]:
    """The images and the folders in a folder, sorted by name; the rest is counted."""
    images, folders = [], []
    readable = formats_by_suffix()
    try:
        for path in sorted(folder.iterdir()):
            suffix = path.suffix.lower()
            if path.name.startswith(".") or path.name.lower() in _LEFT_BEHIND:
                left_out[HIDDEN] += 1
            elif path.is_dir():
                folders.append(path)
            elif not path.is_file():
                left_out["links to nothing"] += 1
            elif suffix in readable:
                images.append(path)
            else:
                left_out[suffix or "without a suffix"] += 1
    except OSError as error:
        got = error.strerror or str(error)
        raise fault("image_folder", folder, "a folder", got, "check the path") from None
    return images, folders


def _images_below(folder: Path) -> int:
    images, folders = entries(folder, Counter())
    return len(images) + sum(map(_images_below, folders))


def _none(folder: Path, expected: str, left_out: Counter[str], way_out: str) -> DatasetError:
    """The error for a folder without images: it says what lies there in their place."""
    if left_out[INSIDE]:
        way_out = "name the folder whose folders are the classes, or move the images up"
    elif {*left_out} - _BESIDE - {INSIDE}:
        way_out = f"{CONVERT}, or move the folder elsewhere"
    elif +left_out and way_out.startswith("remove"):
        way_out = "move or remove the folder"
    got = f"none, and {_listed(left_out)}" if +left_out else "none"
    return fault("image_folder", folder, expected, got, way_out)


def _tell(folder: Path, left_out: Counter[str], images: int) -> None:
    """Warn where something is left out that may be an image; a list of labels beside is none."""
    seen = Counter({reason: count for reason, count in left_out.items() if reason != HIDDEN})
    if not {*+seen} - _BESIDE:
        return
    suffixes = [r for r in seen if r.startswith(".") and r not in _BESIDE]
    ways_out = [f"what is {' or '.join(suffixes)} is not read: {CONVERT}"] if suffixes else []
    ways_out += ["move images up into the folder of their class"] if seen[INSIDE] else []
    number = seen.total()
    warnings.warn(
        f"image_folder: {folder}: {number:,} of {images + number:,} files are left out: "
        f"{_listed(seen)}. Way out: {'; '.join(ways_out) or 'mend or remove the links'}",
        stacklevel=4,
    )


def _listed(left_out: Counter[str]) -> str:
    """Counts in words.

    >>> _listed(Counter({".heic": 2, "hidden": 1}))
    '2 .heic, 1 hidden'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
