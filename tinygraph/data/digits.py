"""digits: 1,797 images of handwritten digits, 8 by 8 pixels, that scikit-learn brings along."""

from __future__ import annotations

import numpy as np

from tinygraph.checks import one_of
from tinygraph.data.dataset import SPLITS, ArrayDataset
from tinygraph.data.files import library

TRAIN_FRACTION, SPLIT_SEED = 0.8, 0  # part of what this dataset is: changing them changes results


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
    one_of("digits", "split", split, SPLITS)
    bunch = library("digits", "sklearn.datasets", "scikit-learn", "holds the images").load_digits()
    images = (bunch.images / 16).astype(np.float32)[:, None]  # grey levels 0 to 16; (N, 1, 8, 8)
    everything = ArrayDataset(
        images, bunch.target.astype(np.int64), "digits", [str(d) for d in range(10)]
    )
    train, test = everything.split(TRAIN_FRACTION, SPLIT_SEED)
    return train if split == "train" else test
