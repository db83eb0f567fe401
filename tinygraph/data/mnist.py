"""mnist: 70,000 images of handwritten digits, 28 by 28 pixels.

The four files are not part of tinygraph: a folder with them is named, or they are downloaded.
Either way each must have the SHA-256 of the published file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tinygraph.base import AnyPath, DatasetError, one_of
from tinygraph.data import files
from tinygraph.data.dataset import SPLITS, ArrayDataset
from tinygraph.data.files import Published
from tinygraph.data.idx import read_idx
from tinygraph.engine import Array

URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"

# Compressed as published, and the same files unpacked.
FILES = {
    "train-images-idx3-ubyte.gz": Published(
        9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": Published(
        28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": Published(
        1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "t10k-labels-idx1-ubyte.gz": Published(
        4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
    "train-images-idx3-ubyte": Published(
        47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": Published(
        60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    "t10k-images-idx3-ubyte": Published(
        7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "t10k-labels-idx1-ubyte": Published(
        10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
}

_MAX_BYTES = 1 << 26  # the largest of the files declares 47 MB


def mnist(
    split: str = "train",
    data_dir: AnyPath | None = None,
    download: bool = False,
    verify: bool = True,
) -> ArrayDataset:
    """Handwritten digits of 28 by 28 pixels: 60,000 for training, 10,000 for the test.

    Parameters
    ----------
    split : {"train", "test"}
        Which part.
    data_dir : str or Path, optional
        The folder that holds the four files, or that has them in its folder `mnist`; by default
        the folder that the environment variable TINYGRAPH_DATA names.  Files may be compressed, as
        published, or unpacked.
    download : bool
        Fetch files that are missing into `data_dir`, or into the user's cache where none is named.
        Needs pooch.
    verify : bool
        Whether each file must be the published one, by its SHA-256.

    Returns
    -------
    ArrayDataset
        Inputs (N, 1, 28, 28), float32 from 0 to 1; labels (N,), int64 from 0 to 9.

    Raises
    ------
    DatasetError
        A file is missing, corrupt, not the published one, or does not belong to its companion.
    ArgumentError
        Another name of a split.

    References
    ----------
    LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition",
    Proceedings of the IEEE 86(11), 1998.

    Examples
    --------
    >>> import tinygraph as tg
    >>> train = tg.data.mnist("train", data_dir="data")      # doctest: +SKIP
    """
    prefix = {"train": "train", "test": "t10k"}[one_of("mnist", "split", split, SPLITS)]
    folders = files.folders(data_dir, "mnist")
    pixels = _read(f"{prefix}-images-idx3-ubyte", 3, folders, download, verify)
    labels = _read(f"{prefix}-labels-idx1-ubyte", 1, folders, download, verify)
    if len(pixels) != len(labels):
        raise DatasetError(
            "mnist",
            f"{prefix}-labels-idx1-ubyte",
            f"{len(pixels)} labels, one for each image",
            len(labels),
            "take both files from the same place",
        )
    images = np.divide(pixels[:, None], 255, dtype=np.float32)  # (N, 1, 28, 28)
    return ArrayDataset(images, labels.astype(np.int64), "mnist", [str(d) for d in range(10)])


def _read(stem: str, ndim: int, folders: list[Path], download: bool, verify: bool) -> Array:
    """Find one file, compressed or not, hold it to its published form, and read it."""
    names = [f"{stem}.gz", stem]
    path = files.find("mnist", names, folders, URL, FILES[names[0]], download)
    if verify:
        files.verify("mnist", path, FILES[path.name])
    array = read_idx(path, _MAX_BYTES)
    if array.dtype != np.uint8 or array.ndim != ndim:
        raise DatasetError(
            "mnist",
            str(path),
            f"bytes in {ndim} dimensions",
            f"{array.dtype} in {array.ndim}",
            "download the file again",
        )
    return array
