"""The digits of the package, compared with scikit-learn's own arrays."""

import sys
from importlib import import_module

import numpy as np
import pytest

from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.data import datasets, digits, load

module = import_module("tinygraph.data.digits")  # the package has a function of that name


@pytest.mark.second
def test_the_two_parts_are_the_whole():
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn")
    train, test = digits("train"), digits("test")
    assert (len(train), len(test)) == (1438, 359)
    for part in (train, test):
        assert part.inputs.dtype == np.float32 and part.labels.dtype == np.int64
        assert part.inputs.shape[1:] == (1, 8, 8)
    bunch = datasets.load_digits()
    whole = np.concatenate([train.inputs, test.inputs])[:, 0] * 16
    labels = np.concatenate([train.labels, test.labels])
    ours = sorted((label, image.tobytes()) for label, image in zip(labels, whole, strict=True))
    theirs = zip(bunch.target, bunch.images.astype(np.float32), strict=True)
    assert ours == sorted((label, image.tobytes()) for label, image in theirs)


def test_the_same_every_time():
    np.testing.assert_array_equal(digits("test").inputs, digits("test").inputs)


def test_as_many_of_each_as_are_published():
    """UCI's page counts them: 178 zeros, 182 ones, and so on."""
    labels = np.concatenate([digits("train").labels, digits("test").labels])
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(labels).tolist() == counts


def test_no_other_library_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert len(digits()) == 1438


def test_a_file_that_is_damaged_is_named(monkeypatch, tmp_path):
    content = bytearray(module.IMAGES.read_bytes())
    content[20000] ^= 1
    broken = tmp_path / module.IMAGES.name
    broken.write_bytes(content)
    monkeypatch.setattr(module, "IMAGES", broken)
    with pytest.raises(DatasetError, match=f"{broken}.*an intact gzip file"):
        digits()


def test_unknown_split():
    with pytest.raises(ArgumentError, match="did you mean 'test'"):
        digits("tests")


def test_registry_proposes_the_nearest_name():
    assert set(datasets) == {"digits", "mnist", "cifar10"}
    with pytest.raises(ArgumentError, match="did you mean 'digits'"):
        load("digit")
