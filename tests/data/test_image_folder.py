"""image_folder: made images, compared with the pixels they were made of, and broken ones."""

import struct
import sys
import warnings
import zlib

import numpy as np
import pytest

from tinygraph.base.errors import ArgumentError, DatasetError, ShapeError
from tinygraph.data import DataLoader, image_folder
from tinygraph.data.images import decode

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


# ---- which files are read, and how they are turned -------------------------------------------


def test_all_that_pillow_reads_is_read(tmp_path):
    """Formats without a loss give the same pixels, whatever the case of the suffix."""
    array = colour()
    names = ["a.png", "b.BMP", "c.webp", "d.Tif", "e.tiff", "f.ppm", "g.tga", "h.jp2", "i.pcx"]
    for name in names:
        lossless = {"lossless": True} if name == "c.webp" else {}
        save(tmp_path / name, array, **lossless)
    Image.fromarray(array).quantize(24).save(tmp_path / "j.gif")
    Image.fromarray(array).save(tmp_path / "k.jpg", "WEBP", lossless=True)  # by another name
    data = image_folder(tmp_path)
    assert len(data) == 11 and data.left_out == {}
    expected = array.transpose(2, 0, 1) / np.float32(255)
    np.testing.assert_array_equal(data[:][0], np.broadcast_to(expected, (11, 3, 4, 6)))


def test_the_first_picture_of_an_animation_and_of_a_file_with_pages(tmp_path):
    pictures = [Image.new("RGB", (3, 2), name) for name in ("red", "blue")]
    for name in ("a.gif", "b.webp", "c.tif", "d.png"):
        more = {"lossless": True} if name == "b.webp" else {}
        pictures[0].save(tmp_path / name, save_all=True, append_images=pictures[1:], **more)
    images = image_folder(tmp_path)[:][0]
    np.testing.assert_array_equal(images[:, 0], 1)
    np.testing.assert_array_equal(images[:, 1:], 0)


def test_transparent_palettes_and_deep_levels(tmp_path):
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    image.save(tmp_path / "a.png", transparency=bytes([0, 128]))
    np.testing.assert_array_equal(image_folder(tmp_path)[0][0][:, 0].T, [[1, 0, 0], [0, 0, 1]])
    save(tmp_path / "a.tif", np.array([[0, 0x80FF]], np.uint16))
    image = image_folder(tmp_path, mode="L")[1][0] * 255
    np.testing.assert_allclose(image[0, 0], [0, 0x80], atol=1e-4)


@pytest.mark.parametrize("dtype, levels", [("f4", [0.5, 1]), ("i4", [-1, 1]), ("i4", [0, 1 << 16])])
def test_levels_of_an_unknown_range_are_refused(tmp_path, dtype, levels):
    save(tmp_path / "a.tif", np.array([levels], dtype))
    assert "a.tif: expected an intact image" in refused(tmp_path)


TURNED = {  # what is upright, of the rows as they are stored
    1: lambda stored: stored,
    2: lambda stored: stored[:, ::-1],
    3: lambda stored: stored[::-1, ::-1],
    4: lambda stored: stored[::-1],
    5: lambda stored: np.swapaxes(stored, 0, 1),
    6: lambda stored: np.rot90(stored, -1),  # the camera's right side was up: clockwise
    7: lambda stored: np.swapaxes(stored[::-1, ::-1], 0, 1),
    8: lambda stored: np.rot90(stored),
}


@pytest.mark.parametrize("suffix", ["png", "tif", "webp"])
@pytest.mark.parametrize("orientation", [*TURNED, 0, 9])
def test_a_photo_is_turned_upright(tmp_path, orientation, suffix):
    exif = Image.Exif()
    exif[0x0112] = orientation
    more = {"lossless": True} if suffix == "webp" else {}
    array = save(tmp_path / f"a.{suffix}", colour(2, 3), exif=exif, **more)
    expected = TURNED.get(orientation, TURNED[1])(array).transpose(2, 0, 1) / np.float32(255)
    np.testing.assert_array_equal(image_folder(tmp_path)[0][0], expected)


def test_damaged_exif_turns_nothing(tmp_path):
    array = save(tmp_path / "a.webp", colour(2, 3), exif=b"Exif\0\0MM\0*\xff", lossless=True)
    expected = array.transpose(2, 0, 1) / np.float32(255)
    np.testing.assert_array_equal(image_folder(tmp_path)[0][0], expected)


def test_what_systems_leave_behind_is_no_image_and_no_class(tmp_path):
    for name in ("cat/a.png", "dog/a.png", "__MACOSX/cat/a.png", ".ipynb_checkpoints/a.png"):
        save(tmp_path / name, colour())
    for name in (".DS_Store", "cat/._a.png", "cat/Thumbs.db", "dog/desktop.ini", "cat/.b.png"):
        (tmp_path / name).write_bytes(b"not asked for")
    (tmp_path / "labels.csv").write_text("a,b", encoding="utf-8")
    data = image_folder(tmp_path)  # without a warning
    assert data.classes == ("cat", "dog") and len(data) == 2
    assert data.left_out == {"hidden": 7, ".csv": 1}
    save(tmp_path / "flat/a.png", colour())
    (tmp_path / "flat/__MACOSX").mkdir()
    assert image_folder(tmp_path / "flat").classes is None


def test_what_is_left_out_is_told_once_with_counts(tmp_path):
    for name in ("cat/a.png", "dog/a.png", "dog/more/b.png", "dog/more/deep/c.webp"):
        save(tmp_path / name, colour())
    for name in ("cat/a.HEIC", "cat/b.heic", "dog/c.xcf", "cat/notes.txt", "dog/.hidden"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "cat/d.png").symlink_to(tmp_path / "absent.png")
    with pytest.warns(UserWarning) as told:
        data = image_folder(tmp_path)
    (warning,) = told
    assert warning.filename == __file__
    text = str(warning.message)
    assert "7 of 9 files are left out: 2 .heic, 1 links to nothing, 1 .txt" in text
    assert "1 .xcf, 2 in folders inside a class" in text and "convert them to PNG or JPEG" in text
    assert len(data) == 2 and data.left_out == {
        ".heic": 2,
        ".txt": 1,
        "links to nothing": 1,
        ".xcf": 1,
        "hidden": 1,
        "in folders inside a class": 2,
    }


def test_a_class_of_other_files_is_not_called_empty(tmp_path):
    save(tmp_path / "cat/a.png", colour())
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog/a.heic").write_bytes(b"x")
    text = refused(tmp_path)
    assert "got none, and 1 .heic. Way out: convert them to PNG or JPEG" in text
    (tmp_path / "dog/a.heic").rename(tmp_path / "dog/a.txt")
    assert "got none, and 1 .txt. Way out: move or remove the folder" in refused(tmp_path)
    save(tmp_path / "dog/deep/a.png", colour())
    assert "name the folder whose folders are the classes" in refused(tmp_path)
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/a.heic").write_bytes(b"x")
    assert "got none, and 1 .heic. Way out: convert" in refused(tmp_path / "flat")


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
    assert "a.png: expected an intact image (PNG, JPEG, BMP, GIF," in refused(tmp_path)


def test_an_image_that_disappears(tmp_path):
    save(tmp_path / "a.png", colour())
    data = image_folder(tmp_path)
    (tmp_path / "a.png").unlink()
    with pytest.raises(DatasetError, match="nothing at that path"):
        data[0]


def test_folders_that_make_no_dataset(tmp_path):
    assert "images (.png, .jpg, .webp, .gif, .tif and others" in refused(tmp_path)
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


@pytest.mark.parametrize(("limit", "size"), [(30, (6, 6)), (10, (6, 6)), (10, (7, 5))])
def test_max_pixels_rules_beyond_pillows_own_limit(tmp_path, monkeypatch, limit, size):
    """Pillow warns from its limit on, and refuses from twice as many pixels on."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    count = size[0] * size[1]
    for suffix in ("png", "jpg", "bmp"):
        Image.new("RGB", size, "red").save(tmp_path / f"a.{suffix}")
        image, _ = image_folder(tmp_path, max_pixels=count)[0]
        assert image.shape == (3, size[1], size[0]) and image[0, 0, 0] > 0.9
        said = refused(tmp_path, max_pixels=count - 1)
        assert f"at most {count - 1} pixels, got {size[0]} by {size[1]}" in said
        (tmp_path / f"a.{suffix}").unlink()
    assert limit == Image.MAX_IMAGE_PIXELS  # the program's own


@pytest.mark.second
def test_an_image_of_more_pixels_than_pillow_opens(tmp_path):
    """196 million: of one bit each in the file."""
    Image.new("1", (14000, 14000), 1).save(tmp_path / "large.png")
    image = decode("test", "large.png", tmp_path / "large.png", "L", 1 << 28)
    assert image.size == (14000, 14000) and image.getpixel((13999, 13999)) == 255
