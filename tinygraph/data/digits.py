"""digits: 1,797 images of handwritten digits, 8 by 8 pixels, that scikit-learn brings along."""

from __future__ import annotations

import numpy as np

from tinygraph.data.dataset import ArrayDataset
from tinygraph.errors import ArgumentError, DatasetError, install, nearest

SPLITS = ("train", "test")
TRAIN_FRACTION, SPLIT_SEED = 0.8, 0  # part of what this dataset is: changing them changes results


def require_split(op: str, split: str) -> str:
    """The name of a split, or ArgumentError."""
    if split not in SPLITS:
        raise ArgumentError(
            op, "split", "'train' or 'test'", repr(split), nearest(str(split), SPLITS)
        )
    return split


def digits(split: str = "train") -> ArrayDataset:
    """Handwritten digits of 8 by 8 pixels: 1,438 for training, 359 for the test.

    Parameters
    ----------
    split : {"train", "test"}
        Which part.  The parts come from `ArrayDataset.split(0.8, seed=0)`: the same on any machine.

    Returns
    -------
    ArrayDataset
        Inputs (N, 1, 8, 8), float32 from 0 to 1; labels (N,), int64 from 0 to 9.

    Raises
    ------
    DatasetError
        scikit-learn is not installed.
    ArgumentError
        Another name of a split.

    References
    ----------
    Alpaydin, Kaynak, "Optical recognition of handwritten digits", UCI Machine Learning
    Repository 1998; scikit-learn holds its test part.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.data.digits("test")
    ArrayDataset(digits: 359 samples of float32 (1, 8, 8))
    """
    require_split("digits", split)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DatasetError(
            "digits",
            "scikit-learn",
            "to be installed, for it holds the images",
            "no such library",
            install("data"),
        ) from None
    bunch = load_digits()
    images = (bunch.images / 16).astype(np.float32)[:, None]  # grey levels 0 to 16; (N, 1, 8, 8)
    everything = ArrayDataset(
        images, bunch.target.astype(np.int64), "digits", [str(d) for d in range(10)]
    )
    train, test = everything.split(TRAIN_FRACTION, SPLIT_SEED)
    return train if split == "train" else test
