"""Where the real data files are, which are no part of the project."""

import os
from pathlib import Path

import pytest


def mnist_folder():
    """The folder with the MNIST files, or a skip that says how to give one."""
    return _folder("mnist", ("mnist", "."), "train-images-idx3-ubyte*")


def cifar10_folder():
    """The folder with subsets of CIFAR-10, lossless and JPEG, or a skip."""
    return _folder("CIFAR-10 subset", ("cifar10", "."), "lossless_labels.u8")


def set5_folder():
    """The folder with the pairs of images of Set5, or a skip."""
    inner = "super_resolution/Set5_pairs"
    return _folder("Set5", (inner,), "x3/*_LR.png") / inner


def splice_folder():
    """The folder with the files of splice junctions, or a skip."""
    return _folder("splice", ("splice", "."), "spliceTrain.tr*")


def _folder(what, inner, pattern):
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("TINYGRAPH_DATA", beside))
    if not any(any((folder / name).glob(pattern)) for name in inner):
        pytest.skip(f"no {what} files: name their folder in $TINYGRAPH_DATA")
    return folder
