"""The digits of scikit-learn, compared with scikit-learn's own arrays."""

import sys

import numpy as np
import pytest

from tinygraph.data import datasets, digits, load
from tinygraph.errors import ArgumentError, DatasetError

sklearn_datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn")


def test_the_two_parts_are_the_whole():
    train, test = digits("train"), digits("test")
    assert (len(train), len(test)) == (1438, 359)
    for part in (train, test):
        assert part.inputs.dtype == np.float32 and part.labels.dtype == np.int64
        assert part.inputs.shape[1:] == (1, 8, 8)
    bunch = sklearn_datasets.load_digits()
    whole = np.concatenate([train.inputs, test.inputs])[:, 0] * 16
    labels = np.concatenate([train.labels, test.labels])
    ours = sorted((label, image.tobytes()) for label, image in zip(labels, whole, strict=True))
    theirs = zip(bunch.target, bunch.images.astype(np.float32), strict=True)
    assert ours == sorted((label, image.tobytes()) for label, image in theirs)


def test_the_same_every_time():
    np.testing.assert_array_equal(digits("test").inputs, digits("test").inputs)


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DatasetError, match=r"pip install -e '\.\[data\]'"):
        digits()


def test_unknown_split():
    with pytest.raises(ArgumentError, match="did you mean 'test'"):
        digits("tests")


def test_registry_proposes_the_nearest_name():
    assert set(datasets) == {"digits", "mnist", "cifar10"}
    with pytest.raises(ArgumentError, match="did you mean 'digits'"):
        load("digit")
