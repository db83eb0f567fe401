"""digits: 1,797 images of handwritten digits, 8 by 8 pixels, that tinygraph brings along.

The two files beside this one, in MNIST's format, hold the test part of E. Alpaydin and C. Kaynak,
"Optical recognition of handwritten digits", UCI Machine Learning Repository 1998,
doi 10.24432/C50P49, under the licence CC BY 4.0: the arrays that scikit-learn's `load_digits`
gives, in their order, as bytes from 0 to 16.  Each counts the black pixels in a square of 4 by 4 of
a form that was filled in by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tinygraph.base import one_of
from tinygraph.data.dataset import SPLITS, ArrayDataset
from tinygraph.data.idx import read_idx

IMAGES = Path(__file__).with_name("digits-images-idx3-ubyte.gz")
LABELS = Path(__file__).with_name("digits-labels-idx1-ubyte.gz")
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
        A file of the package is damaged.
    ArgumentError
        Another name of a split.

    References
    ----------
    Alpaydin, Kaynak, "Optical recognition of handwritten digits", UCI Machine Learning
    Repository 1998, doi 10.24432/C50P49; these are its test part.

    Examples
    --------
    >>> import tinygraph as tg
    >>> tg.data.digits("test")
    ArrayDataset(digits: 359 samples of float32 (1, 8, 8))
    """
    one_of("digits", "split", split, SPLITS)
    levels = read_idx(IMAGES)[:, None]  # (N, 1, 8, 8), from 0 to 16
    images = (levels / 16).astype(np.float32)
    labels = read_idx(LABELS).astype(np.int64)
    everything = ArrayDataset(images, labels, "digits", [str(d) for d in range(10)])
    train, test = everything.split(TRAIN_FRACTION, SPLIT_SEED)
    return train if split == "train" else test
