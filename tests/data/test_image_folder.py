"""image_folder: made images, compared with the pixels they were made of, and broken ones."""

import struct
import sys
import warnings
import zlib

import numpy as np
import pytest

from tinygraph.data import DataLoader, image_folder
from tinygraph.errors import ArgumentError, DatasetError, ShapeError

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")

RANDOM = np.random.default_rng(0)


def save(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return array


def colour(height=4, width=6):
    return RANDOM.integers(0, 256, (height, width, 3), dtype=np.uint8)


def refused(path, **options):
    with pytest.raises(DatasetError) as error:
        image_folder(path, **options)[:]
    return str(error.value)


def test_classes_are_sorted_and_pixels_exact(tmp_path):
    arrays = {
        name: save(tmp_path / name, colour())
        for name in ("dog/b.png", "dog/a.PNG", "ant/z.bmp", "cat/q.png")
    }
    (tmp_path / ".cache").mkdir()
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    data = image_folder(tmp_path)
    assert data.classes == ("ant", "cat", "dog")
    assert data.labels.tolist() == [0, 1, 2, 2] and data.labels.dtype == np.int64
    names = [path.relative_to(tmp_path).as_posix() for path in data.paths]
    assert names == ["ant/z.bmp", "cat/q.png", "dog/a.PNG", "dog/b.png"]
    for i, name in enumerate(names):
        image, label = data[i]
        assert image.shape == (3, 4, 6) and image.dtype == np.float32
        expected = (arrays[name].astype(np.float64) / 255).astype(np.float32)
        np.testing.assert_array_equal(image, expected.transpose(2, 0, 1))
        assert label == data.labels[i]


def test_a_flat_folder_has_no_labels(tmp_path):
    for name in "ba":
        save(tmp_path / f"{name}.png", colour())
    data = image_folder(tmp_path)
    assert data.classes is None and data.labels.tolist() == [-1, -1]
    assert [path.name for path in data.paths] == ["a.png", "b.png"]


def test_jpeg_is_read_as_pillow_reads_it(tmp_path):
    save(tmp_path / "a.jpg", colour(16, 16), quality=80)
    with Image.open(tmp_path / "a.jpg") as image:
        expected = np.asarray(image).transpose(2, 0, 1) / np.float32(255)
    np.testing.assert_array_equal(image_folder(tmp_path)[0][0], expected)


def test_images_are_read_when_they_are_asked_for(tmp_path):
    (tmp_path / "a.png").write_bytes(b"broken")
    save(tmp_path / "b.png", colour())
    data = image_folder(tmp_path)
    assert data[1][0].shape == (3, 4, 6)
    with pytest.raises(DatasetError, match="a.png: expected an intact image"):
        data[0]


def test_indexing_as_in_numpy(tmp_path):
    arrays = [save(tmp_path / f"c/{i}.png", colour()) for i in range(5)]
    data = image_folder(tmp_path)
    stacked = np.stack(arrays).transpose(0, 3, 1, 2) / np.float32(255)
    for index in (slice(1, 4), slice(None, None, -2), np.array([4, 0, 4]), [1, -1], -2):
        np.testing.assert_array_equal(data[index][0], stacked[index])
    assert data[0:0][0].shape[0] == 0
    with pytest.raises(IndexError):
        data[5]
    batches = [x.shape for x, _ in DataLoader(data, 2, prefetch=2)]
    assert batches == [(2, 3, 4, 6), (2, 3, 4, 6), (1, 3, 4, 6)]


def test_modes_are_converted(tmp_path):
    """Every kind of image becomes RGB or L; grey levels by the weights of BT.601."""
    rgb = np.full((2, 2, 3), (200, 100, 50), np.uint8)
    image = Image.fromarray(rgb)
    kinds = {"a": image, "b": image.convert("RGBA"), "c": image.quantize(4)}
    for name, kind in kinds.items():
        kind.save(tmp_path / f"{name}.png")
    image.convert("CMYK").save(tmp_path / "d.jpg", quality=100)
    np.testing.assert_allclose(
        image_folder(tmp_path)[:][0] * 255,
        np.broadcast_to(rgb.transpose(2, 0, 1), (4, 3, 2, 2)),
        atol=2,
    )
    grey = image_folder(tmp_path, mode="L")[:][0] * 255
    assert grey.shape == (4, 1, 2, 2)
    np.testing.assert_allclose(grey, 0.299 * 200 + 0.587 * 100 + 0.114 * 50, atol=2)


def test_deep_and_flat_grey_levels(tmp_path):
    save(tmp_path / "deep.png", np.array([[0, 256, 0x80FF, 65535]], np.uint16))
    image = image_folder(tmp_path, mode="L")[0][0] * 255
    np.testing.assert_allclose(image[0, 0], [0, 1, 0x80, 255], atol=1e-4)
    Image.new("1", (4, 1), 1).save(tmp_path / "deep.png")
    np.testing.assert_array_equal(image_folder(tmp_path)[0][0], np.ones((3, 1, 4)))


@pytest.mark.parametrize("size", [3, (2, 5)])
def test_size(tmp_path, size):
    arrays = [save(tmp_path / "a.png", colour(4, 6)), save(tmp_path / "b.png", colour(9, 7))]
    height, width = (size, size) if isinstance(size, int) else size
    expected = [
        np.asarray(Image.fromarray(array).resize((width, height), Image.Resampling.BICUBIC))
        for array in arrays
    ]
    images, _ = image_folder(tmp_path, size=size)[:]
    stacked = np.stack(expected).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(images, stacked / np.float32(255))


def test_several_shapes_in_a_batch(tmp_path):
    save(tmp_path / "a.png", colour(4, 6))
    save(tmp_path / "b.png", colour(4, 7))
    data = image_folder(tmp_path)
    assert data[1][0].shape == (3, 4, 7)
    with pytest.raises(ShapeError, match=r"b.png: .*\(3, 4, 6\) of a.png.*pass size="):
        data[:]


# ---- files that are no images ------------------------------------------------------------------


def png(width, height, rows=b""):
    """A PNG file with any size in its header."""

    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")


@pytest.mark.parametrize("width, height", [(9000, 9000), (30_000, 30_000), (2**31 - 1, 1000)])
def test_bombs_are_not_decoded(tmp_path, width, height):
    (tmp_path / "a.png").write_bytes(png(width, height))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's own limits are higher
        text = refused(tmp_path)
    assert "a.png" in text and ("at most 67108864 pixels" in text or "bomb" in text)


def test_max_pixels(tmp_path):
    (tmp_path / "a.png").write_bytes(png(2, 2, bytes(14)))
    assert image_folder(tmp_path, max_pixels=4)[0][0].shape == (3, 2, 2)
    assert "at most 3 pixels, got 2 by 2, as its header says" in refused(tmp_path, max_pixels=3)


def test_every_truncation_names_the_file(tmp_path):
    path = tmp_path / "whole.png"
    save(path, colour(8, 8))
    data = path.read_bytes()
    pixels_end = len(data) - 12 - 4 - 4  # then check sums, and a chunk that marks the end
    for length in range(pixels_end):
        path.write_bytes(data[:length])
        assert "whole.png: expected an intact image" in refused(tmp_path)


@pytest.mark.second
def test_damaged_bytes_give_an_image_or_the_error(tmp_path):
    path = tmp_path / "a.jpg"
    save(path, colour(16, 16))
    data = path.read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(bytes(damaged))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                image_folder(tmp_path, max_pixels=1 << 20)[0]
            except DatasetError as error:
                assert "a.jpg" in str(error)


@pytest.mark.parametrize("content", [b"", b"text", b"GIF89a" + bytes(40), b"%!PS-Adobe-3.0 EPSF\n"])
def test_other_formats_are_offered_to_no_decoder(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    assert "a.png: expected an intact image (PNG, JPEG, BMP)" in refused(tmp_path)


def test_an_image_that_disappears(tmp_path):
    save(tmp_path / "a.png", colour())
    data = image_folder(tmp_path)
    (tmp_path / "a.png").unlink()
    with pytest.raises(DatasetError, match="nothing at that path"):
        data[0]


def test_folders_that_make_no_dataset(tmp_path):
    assert "images (.bmp, .jpeg, .jpg, .png), got none" in refused(tmp_path)
    assert "expected a folder, got No such file" in refused(tmp_path / "absent")
    save(tmp_path / "cat/a.png", colour())
    (tmp_path / "dog").mkdir()
    assert "dog: expected at least one image of this class" in refused(tmp_path)
    save(tmp_path / "dog/a.png", colour())
    save(tmp_path / "b.png", colour())
    assert "both: b.png beside cat" in refused(tmp_path)


def test_bad_arguments(tmp_path):
    save(tmp_path / "a.png", colour())
    for size in (0, (3, 0), (1, 2, 3), "ab", 2.5):
        with pytest.raises(ArgumentError, match="size: expected an int of at least 1, or two"):
            image_folder(tmp_path, size)
    with pytest.raises(ArgumentError, match="mode: expected 'RGB' or 'L', got 'RGBA'"):
        image_folder(tmp_path, mode="RGBA")
    with pytest.raises(ArgumentError, match="max_pixels"):
        image_folder(tmp_path, max_pixels=0)


def test_without_pillow(tmp_path, monkeypatch):
    save(tmp_path / "a.png", colour())
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert "pip install -e '.[data]'" in refused(tmp_path)
