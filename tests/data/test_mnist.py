"""mnist: small made files for the faults, the real files where they are at hand."""

import gzip
import sys

import numpy as np
import pytest

from tests.data.idx_bytes import idx
from tests.data.real_files import mnist_folder
from tinygraph.base.errors import DatasetError
from tinygraph.data import mnist

IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def write(folder, images=4, labels=4, pack=gzip.compress, suffix=".gz"):
    pixels = np.arange(images * 28 * 28).reshape(images, 28, 28).astype(np.uint8)
    folder.mkdir(exist_ok=True)
    (folder / (IMAGES + suffix)).write_bytes(pack(idx(pixels)))
    (folder / (LABELS + suffix)).write_bytes(pack(idx(np.arange(labels, dtype=np.uint8))))
    return pixels


@pytest.mark.parametrize("pack, suffix", [(gzip.compress, ".gz"), (bytes, "")])
@pytest.mark.parametrize("inner", ["", "mnist"])
def test_small_files(tmp_path, pack, suffix, inner):
    pixels = write(tmp_path / inner, pack=pack, suffix=suffix)
    data = mnist("test", tmp_path, verify=False)
    assert data.inputs.shape == (4, 1, 28, 28)
    assert data.inputs.dtype == np.float32 and data.labels.dtype == np.int64
    expected = (pixels[:, None].astype(np.float64) / 255).astype(np.float32)
    np.testing.assert_array_equal(data.inputs, expected)
    assert data.labels.tolist() == [0, 1, 2, 3]


def test_folder_from_the_environment(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setenv("TINYGRAPH_DATA", str(tmp_path))
    assert len(mnist("test", verify=False)) == 4


def test_counts_must_agree(tmp_path):
    write(tmp_path, labels=3)
    with pytest.raises(DatasetError, match=f"{LABELS}: expected 4 labels, .* got 3"):
        mnist("test", tmp_path, verify=False)


def test_images_and_labels_exchanged(tmp_path):
    write(tmp_path)
    (tmp_path / f"{IMAGES}.gz").write_bytes((tmp_path / f"{LABELS}.gz").read_bytes())
    with pytest.raises(DatasetError, match="expected bytes in 3 dimensions, got uint8 in 1"):
        mnist("test", tmp_path, verify=False)


def test_another_file_than_the_published_one(tmp_path, monkeypatch):
    write(tmp_path)
    with pytest.raises(DatasetError, match="expected 1648877 bytes, got .* truncated"):
        mnist("test", tmp_path)
    (tmp_path / f"{IMAGES}.gz").write_bytes(bytes(1648877))
    with pytest.raises(DatasetError, match="expected SHA-256 8d422c7b.*it is corrupt"):
        mnist("test", tmp_path)
    (tmp_path / f"{IMAGES}.gz").write_bytes(bytes(1648878))
    with pytest.raises(DatasetError, match="it is too long"):
        mnist("test", tmp_path)


@pytest.mark.parametrize("exists", [True, False])
def test_missing_file(tmp_path, exists):
    folder = tmp_path if exists else tmp_path / "absent"
    with pytest.raises(DatasetError) as error:
        mnist("train", folder)
    for part in (
        "train-images-idx3-ubyte.gz",
        str(folder),
        "--data-dir",
        "$TINYGRAPH_DATA",
        "--download",
    ):
        assert part in str(error.value)


def test_no_folder_named(monkeypatch):
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    with pytest.raises(DatasetError, match="name the folder with --data-dir or"):
        mnist()


def test_download_that_fails(tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch", reason="needs pooch")

    def no_network(*_, **__):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", no_network)
    with pytest.raises(DatasetError, match="a download from https://.*no route to host"):
        mnist("test", tmp_path, download=True)


def test_download_checks_the_published_hash(tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch", reason="needs pooch")
    asked = []

    def retrieve(url, known_hash, name, folder):
        asked.append((url, known_hash))
        write(tmp_path)
        return str(folder / name)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    mnist("test", tmp_path, download=True, verify=False)
    assert asked[0][0].endswith(f"/mnist/{IMAGES}.gz")
    assert asked[0][1].startswith("sha256:8d422c7b0a1c1c79245a5bcf07fe86e3")


def test_download_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetError, match=r"pip install -e '\.\[data\]'"):
        mnist("test", tmp_path, download=True)


@pytest.mark.second
def test_the_real_files():
    """Counts of each digit and the mean grey level, as published for MNIST."""
    folder = mnist_folder()
    test, train = mnist("test", folder), mnist("train", folder)
    assert np.bincount(test.labels).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
    assert train.inputs.shape == (60000, 1, 28, 28)
    assert train.inputs.mean(dtype=np.float64) == pytest.approx(0.1307, abs=5e-5)
    assert train.inputs.std(dtype=np.float64) == pytest.approx(0.3081, abs=5e-5)
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
