"""The datasets by name, as configurations and the command line ask for them."""

from __future__ import annotations

from collections.abc import Callable

from tinygraph.base import AnyPath, one_of
from tinygraph.data.cifar10 import cifar10
from tinygraph.data.dataset import ArrayDataset
from tinygraph.data.digits import digits
from tinygraph.data.mnist import mnist

# name -> function of (split, data_dir, download)
datasets: dict[str, Callable[[str, AnyPath | None, bool], ArrayDataset]] = {
    "digits": lambda split, data_dir, download: digits(split),
    "mnist": mnist,
    "cifar10": cifar10,
}


def load(
    name: str, split: str = "train", data_dir: AnyPath | None = None, download: bool = False
) -> ArrayDataset:
    """The dataset of that name.

    Parameters
    ----------
    name : str
        "digits", "mnist" or "cifar10".
    split : {"train", "test"}
        Which part.
    data_dir, download
        Where its files are and whether missing ones are fetched; a dataset without files of its own
        ignores both.

    Returns
    -------
    ArrayDataset

    Raises
    ------
    ArgumentError
        An unknown name; the message proposes the nearest one.
    DatasetError
        As the dataset's own function.

    Examples
    --------
    >>> import tinygraph as tg
    >>> len(tg.data.load("digits", "train"))
    1438
    """
    return datasets[one_of("load", "name", name, datasets)](split, data_dir, download)
