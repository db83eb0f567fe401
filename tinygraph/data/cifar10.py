"""cifar10: 60,000 colour images of ten classes, 32 by 32 pixels.

The images are not part of tinygraph.  They come in several versions, and what lies in the folder
decides which is read:

    binary      data_batch_1.bin ... data_batch_5.bin, test_batch.bin: records of one label and
                3 * 1,024 bytes (red, green, blue; row-major); the published binary version
    archive     cifar-10-binary.tar.gz: those files as they are published
    jpeg        cifar10_jpeg_subset.zip: train/CLASS/NNNN.jpg and test/CLASS/NNNN.jpg; lossy
    lossless    lossless_batch_0.png, ...: an image per row, 1,024 pixels (row-major) wide, and
                lossless_labels.u8, a byte for each; training images alone

The published Python version consists of pickles, and loading a pickle runs whatever code it holds:
it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinygraph.base import AnyPath, DatasetError, one_of
from tinygraph.data import files
from tinygraph.data.archives import tar_members, zip_members
from tinygraph.data.dataset import SPLITS, ArrayDataset
from tinygraph.data.files import Published
from tinygraph.data.images import decode, pixels
from tinygraph.engine import Array

URL = "https://www.cs.toronto.edu/~kriz/"
ARCHIVE = "cifar-10-binary.tar.gz"
JPEG = "cifar10_jpeg_subset.zip"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}

_BATCH_BYTES = 30_730_000  # 10,000 records
FILES = {
    ARCHIVE: Published(
        170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
    ),
    "data_batch_1.bin": Published(
        _BATCH_BYTES, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"
    ),
    "data_batch_2.bin": Published(
        _BATCH_BYTES, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"
    ),
    "data_batch_3.bin": Published(
        _BATCH_BYTES, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"
    ),
    "data_batch_4.bin": Published(
        _BATCH_BYTES, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"
    ),
    "data_batch_5.bin": Published(
        _BATCH_BYTES, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"
    ),
    "test_batch.bin": Published(
        _BATCH_BYTES, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
    ),
}

_SIDE, _PIXELS = 32, 32 * 32
_RECORD = 1 + 3 * _PIXELS
_MAX_INSIDE = 1 << 28  # the archive holds 184 MB
_MAX_JPEG, _MAX_JPEGS = 1 << 16, 1 << 28  # a file, and all of them
_FORMATS = ("PNG", "JPEG")  # in which images are published
_MAX_ROWS = 50_000
_PYTHON_VERSION = ("data_batch_1", "cifar-10-batches-py", "cifar-10-python.tar.gz")
_MEMBER = re.compile(r"(train|test)/([^/]+)/(\d{1,9})\.jpe?g")


class Contents(NamedTuple):
    """What a version's files hold of a split."""

    images: Sequence[Array]  # uint8 (n, 3, 32, 32), one for each file
    labels: Array
    notes: str


def cifar10(
    split: str = "train",
    data_dir: AnyPath | None = None,
    download: bool = False,
    verify: bool = True,
    version: str = "auto",
) -> ArrayDataset:
    """Colour images of ten classes, 32 by 32 pixels: 50,000 for training, 10,000 for the test.

    Parameters
    ----------
    split : {"train", "test"}
        Which part.
    data_dir : str or Path, optional
        The folder that holds the files, or that has them in its folder `cifar10` or
        `cifar-10-batches-bin`; by default the folder that the environment variable TINYGRAPH_DATA
        names.
    download : bool
        Fetch the published archive where no version is found.  Needs pooch.
    verify : bool
        Whether binary files and the archive must be the published ones, by their SHA-256.  No
        hashes are published for the other versions.
    version : {"auto", "binary", "archive", "jpeg", "lossless"}
        "auto" takes the first of these that is found.  The split has no part in the choice: images
        for training and for the test are of one kind.

    Returns
    -------
    ArrayDataset
        Inputs (N, 3, 32, 32), float32 from 0 to 1; labels (N,), int64 from 0 to 9; `name` and
        `notes` say which version it is.  Of the subsets "jpeg" and "lossless", N is what they hold.

    Raises
    ------
    DatasetError
        Files are missing, corrupt or not the published ones; only the Python version, which
        consists of pickles, is there; Pillow, which "jpeg" and "lossless" need, is not installed.
    ArgumentError
        Another name of a split or of a version.

    References
    ----------
    Krizhevsky, "Learning multiple layers of features from tiny images", 2009.

    Examples
    --------
    >>> import tinygraph as tg
    >>> train = tg.data.cifar10("train", data_dir="data")      # doctest: +SKIP
    """
    one_of("cifar10", "split", split, SPLITS)
    one_of("cifar10", "version", version, ["auto", *VERSIONS])
    inner = ("cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin")
    folders = files.folders(data_dir, *inner)
    version, folder = _find(version, folders, download)
    part = VERSIONS[version].read(folder, split, verify)
    return _dataset(version, part)


def _dataset(version: str, part: Contents) -> ArrayDataset:
    inputs = np.empty((len(part.labels), 3, _SIDE, _SIDE), np.float32)
    start = 0
    for images in part.images:
        np.divide(images, 255, out=inputs[start : start + len(images)], dtype=np.float32)
        start += len(images)
    suffix = {"jpeg": " (jpeg subset)", "lossless": " (lossless subset)"}.get(version, "")
    labels = part.labels.astype(np.int64)
    return ArrayDataset(inputs, labels, f"cifar10{suffix}", CLASSES, part.notes)


def _find(version: str, folders: list[Path], download: bool) -> tuple[str, Path]:
    """The version to read, and its folder."""
    for candidate in VERSIONS if version == "auto" else [version]:
        for folder in folders:
            if any((folder / name).is_file() for name in VERSIONS[candidate].marks):
                return candidate, folder
    if download and version in ("auto", "archive"):
        path = files.fetch("cifar10", URL, ARCHIVE, FILES[ARCHIVE].sha256, folders)
        return "archive", path.parent
    for folder in folders:
        for name in _PYTHON_VERSION:
            if (folder / name).exists():
                raise DatasetError(
                    "cifar10",
                    str(folder / name),
                    f"the binary version (data_batch_1.bin, ... or {ARCHIVE})",
                    "the Python version, which consists of pickles: "
                    "loading one runs whatever code it holds",
                    f"fetch {ARCHIVE} from {URL}cifar.html, or pass --download",
                )
    marks = VERSIONS["archive" if version == "auto" else version].marks
    raise files.missing("cifar10", marks[0], folders)


def _read_binary(folder: Path, split: str, verify: bool) -> Contents:
    contents = {}
    for name in BATCHES[split]:
        path = folder / name
        if not path.is_file():
            raise files.missing("cifar10", name, [folder])
        if verify:
            files.verify("cifar10", path, FILES[name])
        with path.open("rb") as file:
            contents[str(path)] = file.read(_BATCH_BYTES + 1)
    return _records(contents, "the binary version" + ("" if verify else ", not verified"))


def _read_archive(folder: Path, split: str, verify: bool) -> Contents:
    path = folder / ARCHIVE
    if verify:
        files.verify("cifar10", path, FILES[ARCHIVE])
    names = BATCHES[split]
    found = tar_members("cifar10", path, names, _BATCH_BYTES, _MAX_INSIDE)
    for name in names:
        if name not in found:
            raise DatasetError(
                "cifar10",
                str(path),
                f"{name} inside",
                f"only {sorted(found)}",
                f"fetch {ARCHIVE} again",
            )
    contents = {f"{path}: {name}": found[name] for name in names}
    return _records(contents, "the binary version" + ("" if verify else ", not verified"))


def _records(contents: dict[str, bytes], notes: str) -> Contents:
    """Files of the binary version, cut into records."""
    images, labels = [], []
    for name, data in contents.items():
        if not data or len(data) % _RECORD or len(data) > _BATCH_BYTES:
            got = f"{len(data)} bytes"
            if len(data) > _BATCH_BYTES:
                got = f"more than {_BATCH_BYTES} bytes"
            raise DatasetError(
                "cifar10",
                name,
                f"1 to 10000 whole records of {_RECORD} bytes",
                got,
                "it is truncated or another file: fetch it again",
            )
        records = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
        images.append(records[:, 1:].reshape(-1, 3, _SIDE, _SIDE))
        labels.append(_checked(name, records[:, 0]))
    return Contents(images, np.concatenate(labels), notes)


def _read_jpeg(folder: Path, split: str, verify: bool) -> Contents:
    path = folder / JPEG
    images, labels = [], []

    def wanted(name: str) -> bool:
        match = _MEMBER.fullmatch(name)
        return match is not None and match[1] == split

    for name, data in zip_members("cifar10", path, wanted, _MAX_JPEG, _MAX_JPEGS):
        label = name.split("/")[1]
        if label not in CLASSES:
            raise DatasetError(
                "cifar10",
                f"{path}: {name}",
                "a folder named like a class",
                repr(label),
                f"the classes are {', '.join(CLASSES)}",
            )
        image = pixels(
            decode("cifar10", f"{path}: {name}", data, max_pixels=_PIXELS, formats=_FORMATS)
        )
        if image.shape != (3, _SIDE, _SIDE):
            raise DatasetError(
                "cifar10",
                f"{path}: {name}",
                "32 by 32 pixels",
                " by ".join(map(str, image.shape[1:])),
            )
        images.append(image[None])
        labels.append(CLASSES.index(label))
    if not images:
        raise DatasetError("cifar10", str(path), f"images {split}/CLASS/NNNN.jpg", "none")
    return Contents(
        images,
        np.array(labels),
        "a subset, compressed to JPEG: the pixels differ a "
        "little from the published ones; sorted by class",
    )


def _read_lossless(folder: Path, split: str, verify: bool) -> Contents:
    if split == "test":
        raise DatasetError(
            "cifar10",
            str(folder),
            "test images",
            "the lossless subset, which has images for training alone",
            "hold some of them out with split(), or use another version for both",
        )
    paths = sorted(folder.glob("lossless_batch_*.png"), key=lambda path: (len(path.name), path))
    for i, path in enumerate(paths):
        if path.name != f"lossless_batch_{i}.png":
            raise files.missing("cifar10", f"lossless_batch_{i}.png", [folder])
    label_path = folder / "lossless_labels.u8"
    if not label_path.is_file() or not paths:
        absent = "lossless_batch_0.png" if label_path.is_file() else label_path.name
        raise files.missing("cifar10", absent, [folder])
    images = [_rows(path) for path in paths]
    with label_path.open("rb") as file:
        labels = np.frombuffer(file.read(_MAX_ROWS * len(paths) + 1), np.uint8)
    count = sum(map(len, images))
    if len(labels) != count:
        raise DatasetError(
            "cifar10",
            str(label_path),
            f"{count} labels, one for each image",
            len(labels),
            "take all files from the same place",
        )
    notes = f"the first {count} training images, without loss"
    return Contents(images, _checked(str(label_path), labels), notes)


def _rows(path: Path) -> Array:
    """A PNG file with an image in each row: uint8 (rows, 3, 32, 32)."""
    image = pixels(
        decode("cifar10", str(path), path, max_pixels=_MAX_ROWS * _PIXELS, formats=_FORMATS)
    )
    if image.shape[2] != _PIXELS:
        raise DatasetError(
            "cifar10", str(path), f"rows of {_PIXELS} pixels", f"rows of {image.shape[2]}"
        )
    return image.transpose(1, 0, 2).reshape(-1, 3, _SIDE, _SIDE)


def _checked(name: str, labels: Array) -> Array:
    """The labels, or DatasetError where one is above 9."""
    wrong = np.flatnonzero(labels >= len(CLASSES))
    if wrong.size:
        raise DatasetError(
            "cifar10",
            name,
            "labels from 0 to 9",
            f"{labels[wrong[0]]} for image {wrong[0]}",
            "it is damaged or another file: fetch it again",
        )
    return labels


class Version(NamedTuple):
    """How a version is recognised, by any of these files, and read."""

    marks: Sequence[str]
    read: Callable[[Path, str, bool], Contents]


VERSIONS = {
    "binary": Version([*BATCHES["train"], *BATCHES["test"]], _read_binary),
    "archive": Version([ARCHIVE], _read_archive),
    "jpeg": Version([JPEG], _read_jpeg),
    "lossless": Version(["lossless_batch_0.png", "lossless_labels.u8"], _read_lossless),
}
