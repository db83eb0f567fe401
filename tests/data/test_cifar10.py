"""cifar10: small made files of each version and their faults; real subsets where at hand."""

import io
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from tests.data.archive_bytes import tar_gz_bytes, zip_bytes
from tests.data.real_files import cifar10_folder
from tinygraph.base.errors import ArgumentError, DatasetError
from tinygraph.data import cifar10, load

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")

module = sys.modules["tinygraph.data.cifar10"]  # the package names its function so
TRAIN = [f"data_batch_{i}.bin" for i in range(1, 6)]
ARCHIVE, JPEG = "cifar-10-binary.tar.gz", "cifar10_jpeg_subset.zip"


def record(label, value=lambda c, y, x: 0):
    """The bytes of one record, by the published description: label, then planes row by row."""
    planes = [value(c, y, x) % 256 for c in range(3) for y in range(32) for x in range(32)]
    return bytes([label, *planes])


def pattern(c, y, x):
    return 100 * c + 32 * y + x


def jpeg(colour, size=(32, 32), kind="JPEG"):
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, kind)
    return buffer.getvalue()


def write_binary(folder, train=TRAIN):
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate(train):
        (folder / name).write_bytes(record(i, pattern) + record(9 - i))
    (folder / "test_batch.bin").write_bytes(record(7, pattern))


def write_lossless(folder, rows=(2, 1), labels=(6, 9, 0)):
    """Row i of all has in pixel (y, x) the colour (i, y, x)."""
    start = 0
    for batch, count in enumerate(rows):
        image = np.empty((count, 1024, 3), np.uint8)
        for i in range(count):
            for y in range(32):
                for x in range(32):
                    image[i, y * 32 + x] = start + i, y, x
        Image.fromarray(image).save(folder / f"lossless_batch_{batch}.png")
        start += count
    (folder / "lossless_labels.u8").write_bytes(bytes(labels))


def refused(*args, **options):
    with pytest.raises(DatasetError) as error:
        cifar10(*args, **options)
    return str(error.value)


# ---- binary -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inner", ["", "cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"]
)
def test_binary_version(tmp_path, inner):
    write_binary(tmp_path / inner)
    train = cifar10("train", tmp_path, verify=False)
    assert train.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    assert train.inputs.shape == (10, 3, 32, 32)
    assert train.inputs.dtype == np.float32 and train.labels.dtype == np.int64
    for c, y, x in [(0, 0, 0), (0, 0, 5), (0, 3, 0), (1, 0, 0), (2, 31, 31)]:
        assert train.inputs[2, c, y, x] == np.float32(pattern(c, y, x) % 256 / 255)
    assert cifar10("test", tmp_path, verify=False).labels.tolist() == [7]
    assert train.name == "cifar10" and "binary version, not verified" in train.notes
    assert train.classes[0] == "airplane" and train.classes[9] == "truck"


@pytest.mark.parametrize("length", [0, 1, 3072, 3074, 2 * 3073 - 1])
def test_binary_files_of_a_wrong_length(tmp_path, length):
    write_binary(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes((record(1) * 2)[:length])
    text = refused("train", tmp_path, verify=False)
    assert "data_batch_3.bin" in text and f"records of 3073 bytes, got {length} bytes" in text


def test_a_binary_file_that_is_too_long_is_not_read_whole(tmp_path):
    write_binary(tmp_path)
    with (tmp_path / "test_batch.bin").open("wb") as file:
        file.truncate(3073 << 16)  # 200 MB
    tracemalloc.start()
    assert "got more than 30730000 bytes" in refused("test", tmp_path, verify=False)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_a_bad_label(tmp_path):
    write_binary(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(record(3) + record(10))
    assert "labels from 0 to 9, got 10 for image 1" in refused("test", tmp_path, verify=False)


def test_a_missing_batch(tmp_path):
    write_binary(tmp_path, TRAIN[:3])
    assert "data_batch_4.bin: expected the file" in refused("train", tmp_path, verify=False)
    assert len(cifar10("test", tmp_path, verify=False)) == 1


def test_another_file_than_the_published_one(tmp_path):
    write_binary(tmp_path)
    assert "expected 30730000 bytes, got 3073: it is truncated" in refused("test", tmp_path)
    with (tmp_path / "test_batch.bin").open("wb") as file:
        file.truncate(30730000)
    assert "expected SHA-256 8e2eb146" in refused("test", tmp_path)


# ---- archive ----------------------------------------------------------------------------------


def members(folder="cifar-10-batches-bin/"):
    names = [f"{folder}{name}" for name in TRAIN]
    return [(name, record(i, pattern)) for i, name in enumerate(names)]


def test_archive(tmp_path):
    extra = [("cifar-10-batches-bin/readme.html", b"text"), ("../../outside", b"never written")]
    (tmp_path / ARCHIVE).write_bytes(tar_gz_bytes(members()[::-1] + extra))
    train = cifar10("train", tmp_path, verify=False)
    assert train.labels.tolist() == [0, 1, 2, 3, 4]
    assert train.inputs[4, 1, 2, 3] == np.float32(pattern(1, 2, 3) / 255)
    assert [path.name for path in tmp_path.iterdir()] == [ARCHIVE]
    assert not (tmp_path.parent.parent / "outside").exists()


def test_the_archive_must_be_the_published_one(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(tar_gz_bytes(members()))
    assert "expected 170052171 bytes" in refused("train", tmp_path)


def test_binary_files_come_before_the_archive(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(b"no archive")
    write_binary(tmp_path)
    assert len(cifar10("train", tmp_path, verify=False)) == 10
    assert "tar.gz" in refused("train", tmp_path, verify=False, version="archive")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[1:],
        lambda m: [(m[0][0], None), *m[1:]],  # a symbolic link in the place of a file
    ],
    ids=["absent", "link"],
)
def test_archives_without_a_batch(tmp_path, change):
    (tmp_path / ARCHIVE).write_bytes(tar_gz_bytes(change(members())))
    assert "expected data_batch_1.bin inside" in refused("train", tmp_path, verify=False)


def test_archives_with_a_batch_twice(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(tar_gz_bytes([*members()[:1], *members("other/")]))
    assert "data_batch_1.bin twice" in refused("train", tmp_path, verify=False)


def test_every_truncation_of_an_archive_is_refused(tmp_path):
    data = tar_gz_bytes(members())
    for length in range(0, len(data) - 60, 23):  # the end is padding after the last member
        (tmp_path / ARCHIVE).write_bytes(data[:length])
        assert ARCHIVE in refused("train", tmp_path, verify=False)


def test_a_tar_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_INSIDE", 100_000)
    bomb = [("zeros", bytes(1 << 20)), *members()]
    (tmp_path / ARCHIVE).write_bytes(tar_gz_bytes(bomb))
    assert "at most 100000 bytes inside, got more" in refused("train", tmp_path, verify=False)
    (tmp_path / ARCHIVE).write_bytes(tar_gz_bytes(members()))
    assert len(cifar10("train", tmp_path, verify=False)) == 5


# ---- jpeg -------------------------------------------------------------------------------------


def test_jpeg_subset(tmp_path):
    colours = [
        ("train/truck/0001.jpg", "red"),
        ("train/cat/0000.jpg", "blue"),
        ("test/dog/0000.jpg", "white"),
        ("train/truck/0000.jpg", "lime"),
    ]
    files = [(name, jpeg(colour)) for name, colour in colours] + [("README.md", b"text")]
    (tmp_path / JPEG).write_bytes(zip_bytes(files))
    train = cifar10("train", tmp_path)
    assert train.labels.tolist() == [3, 9, 9]  # sorted by class, then by number
    expected = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    np.testing.assert_allclose(train.inputs.mean((2, 3)), expected, atol=0.02)
    assert cifar10("test", tmp_path).labels.tolist() == [5]
    assert train.name == "cifar10 (jpeg subset)" and "JPEG" in train.notes


@pytest.mark.parametrize(
    "name",
    [
        "../train/cat/0000.jpg",
        "/train/cat/0000.jpg",
        "train/../../cat/0000.jpg",
        "..\\cat\\0000.jpg",
        "C:/train/cat/0000.jpg",
    ],
)
def test_zip_names_that_lead_outside_are_refused(tmp_path, name):
    (tmp_path / JPEG).write_bytes(zip_bytes([("train/cat/0000.jpg", jpeg("red")), (name, b"")]))
    text = refused("train", tmp_path)
    assert "names inside the archive" in text and "cat" in text


def test_zip_bombs_are_not_decompressed(tmp_path):
    bomb = [("train/cat/0000.jpg", bytes(10 << 20))]
    (tmp_path / JPEG).write_bytes(zip_bytes(bomb, zipfile.ZIP_DEFLATED))
    assert "at most 65536 bytes for each file" in refused("train", tmp_path)


def test_zip_totals_are_capped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_JPEGS", 2000)
    image = jpeg("red")
    files = [(f"train/cat/{i:04}.jpg", image) for i in range(2000 // len(image) + 1)]
    (tmp_path / JPEG).write_bytes(zip_bytes(files))
    assert "2000 in all" in refused("train", tmp_path)


def test_a_zip_entry_that_understates_its_size(tmp_path):
    data = zip_bytes([("train/cat/0000.jpg", bytes(50_000))], zipfile.ZIP_DEFLATED)
    size = (50_000).to_bytes(4, "little")
    assert data.count(size) == 2
    (tmp_path / JPEG).write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    assert JPEG in refused("train", tmp_path)


def test_a_zip_entry_that_is_longer_than_its_file(tmp_path):
    """A read makes room for all that the entry claims: a MemoryError with 2 GiB."""
    content = jpeg("red")
    data = zip_bytes([("train/cat/0000.jpg", content)])
    directory = data.rindex(b"PK\x01\x02") + 20  # where its compressed size stands
    claim = (2**31 - 1).to_bytes(4, "little")
    (tmp_path / JPEG).write_bytes(data[:directory] + claim + data[directory + 4 :])
    assert "2,147,483,647 bytes of train/cat/0000.jpg in a file of" in refused("train", tmp_path)


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"\xff\xd8\xff no image", "0000.jpg: expected an intact image"),
        (jpeg("red")[:-200], "0000.jpg: expected an intact image"),
        (jpeg("red", (31, 32)), "expected 32 by 32 pixels, got 32 by 31"),
        (jpeg("red", (64, 64)), "expected at most 1024 pixels, got 64 by 64"),
        (jpeg("red", kind="GIF"), "0000.jpg: expected an intact image"),
    ],
    ids=["garbage", "truncated", "small", "large", "gif"],
)
def test_bad_images(tmp_path, content, expected):
    files = [("train/cat/0000.jpg", content), ("train/dog/0000.jpg", jpeg("red"))]
    (tmp_path / JPEG).write_bytes(zip_bytes(files))
    assert expected in refused("train", tmp_path)


def test_damaged_zip_files(tmp_path):
    data = zip_bytes([("train/cat/0000.jpg", jpeg("red"))])
    flipped = bytearray(data)
    flipped[200] ^= 1  # inside the image: its CRC-32 no longer holds
    for damaged in (bytes(flipped), data[:-30], data[:100], b""):
        (tmp_path / JPEG).write_bytes(damaged)
        assert "an intact zip file" in refused("train", tmp_path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zip_bytes([("train/cat/0000.jpg", jpeg("red"))] * 2)
    (tmp_path / JPEG).write_bytes(data)
    assert "train/cat/0000.jpg twice" in refused("train", tmp_path)


def test_zip_files_of_other_things(tmp_path):
    (tmp_path / JPEG).write_bytes(zip_bytes([("train/zebra/0000.jpg", jpeg("red"))]))
    assert "like a class, got 'zebra'" in refused("train", tmp_path)
    assert "test/CLASS/NNNN.jpg, got none" in refused("test", tmp_path)


# ---- lossless ---------------------------------------------------------------------------------


def test_lossless_subset(tmp_path):
    write_lossless(tmp_path)
    train = cifar10("train", tmp_path)
    assert train.labels.tolist() == [6, 9, 0]
    i, y, x = np.meshgrid(range(3), range(32), range(32), indexing="ij")
    expected = np.stack([i, y, x], 1).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(train.inputs, expected)
    assert train.name == "cifar10 (lossless subset)" and "first 3 training" in train.notes
    assert "which has images for training alone" in refused("test", tmp_path)


def test_the_version_does_not_depend_on_the_split(tmp_path):
    """Training on lossless images and testing on lossy ones would mix two kinds."""
    write_lossless(tmp_path)
    files = [("train/cat/0000.jpg", jpeg("red")), ("test/cat/0000.jpg", jpeg("red"))]
    (tmp_path / JPEG).write_bytes(zip_bytes(files))
    names = {cifar10(split, tmp_path).name for split in ("train", "test")}
    assert names == {"cifar10 (jpeg subset)"}
    assert len(cifar10("train", tmp_path, version="lossless")) == 3


def test_lossless_faults(tmp_path):
    write_lossless(tmp_path, labels=(1, 2))
    assert "expected 3 labels, one for each image, got 2" in refused("train", tmp_path)
    write_lossless(tmp_path, labels=(1, 2, 77))
    assert "got 77 for image 2" in refused("train", tmp_path)
    (tmp_path / "lossless_batch_0.png").unlink()
    assert "lossless_batch_0.png: expected the file" in refused("train", tmp_path)
    Image.new("RGB", (1000, 2)).save(tmp_path / "lossless_batch_0.png")
    assert "rows of 1024 pixels, got rows of 1000" in refused("train", tmp_path)
    (tmp_path / "lossless_labels.u8").unlink()
    assert "lossless_labels.u8: expected the file" in refused("train", tmp_path)


# ---- which version, and where -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["data_batch_1", "cifar-10-python.tar.gz"])
def test_pickles_are_refused_and_the_binary_version_named(tmp_path, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pickle", None)
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    text = refused("train", tmp_path)
    assert "binary version" in text and "pickles" in text and ARCHIVE in text


def test_nothing_there(tmp_path, monkeypatch):
    text = refused("train", tmp_path)
    assert ARCHIVE in text and "--data-dir" in text and str(tmp_path) in text
    assert "test_batch" not in text and JPEG in refused("train", tmp_path, version="jpeg")
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    assert "expected a folder that holds it, got none" in refused()


def test_bad_names():
    with pytest.raises(ArgumentError, match="did you mean 'binary'"):
        cifar10(version="binery")
    with pytest.raises(ArgumentError, match="did you mean 'train'"):
        cifar10("trein")


def test_download_checks_the_published_hash(tmp_path, monkeypatch):
    pooch = pytest.importorskip("pooch", reason="needs pooch")
    asked = []

    def retrieve(url, known_hash, name, folder):
        asked.append((url, known_hash))
        (folder / name).write_bytes(tar_gz_bytes(members()))
        return str(folder / name)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    assert len(cifar10("train", tmp_path, download=True, verify=False)) == 5
    assert asked[0][0] == f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
    assert asked[0][1].startswith("sha256:c4a38c50a1bc5f3a1c5537f2155ab9d6")


def test_without_pillow(tmp_path, monkeypatch):
    (tmp_path / JPEG).write_bytes(zip_bytes([("train/cat/0000.jpg", jpeg("red"))]))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert "pip install -e '.[data]'" in refused("train", tmp_path)
    write_binary(tmp_path)
    assert len(cifar10("train", tmp_path, verify=False)) == 10


# ---- the real subsets -------------------------------------------------------------------------


@pytest.mark.second
def test_the_real_subsets_show_the_same_images():
    """Image k of a class is the same in both; JPEG costs 5.8 grey levels in the mean."""
    folder = cifar10_folder()
    lossless = cifar10("train", folder, version="lossless")
    lossy = load("cifar10", "train", folder)
    assert lossless.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert np.bincount(lossy.labels).tolist() == [2000] * 10
    differences = []
    for label in range(10):
        ours = lossless.inputs[lossless.labels == label]
        theirs = lossy.inputs[lossy.labels == label][: len(ours)]
        differences.append(np.abs(ours - theirs).mean((1, 2, 3)) * 255)
    differences = np.concatenate(differences)
    assert differences.mean() == pytest.approx(5.8, abs=0.05)
    assert differences.max() < 30  # two different images differ by more than 50 in the mean
