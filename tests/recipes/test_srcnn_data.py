"""What srcnn learns from and is measured with: pictures, luma, pairs, crops, PSNR and SSIM."""

import math

import numpy as np
import pytest

from tests.data.real_files import set5_folder
from tinygraph.base.errors import ArgumentError, DatasetError, ShapeError
from tinygraph.data import ArrayDataset, image_folder, super_resolution
from tinygraph.data.super_resolution import SETS, PublishedPictures, pixel_digest
from tinygraph.recipes import srcnn_samples
from tinygraph.recipes.srcnn_colour import luma, to_rgb, to_ycbcr
from tinygraph.recipes.srcnn_quality import PEAK, levels, means, psnr, ssim
from tinygraph.recipes.srcnn_samples import Collections, Crops, Pair, Portions, pairs, prepared

Image = pytest.importorskip("PIL.Image")


# ---- files --------------------------------------------------------------------------------------


@pytest.fixture
def made_set(tmp_path, monkeypatch):
    """A folder with five small pictures as Set5, whose pixels count as published."""
    folder = tmp_path / "Set5"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in "abcde":
        Image.fromarray(rng.integers(0, 256, (6, 7, 3), np.uint8)).save(folder / f"{name}.png")
    published = PublishedPictures(5, pixel_digest(image_folder(folder)))
    monkeypatch.setitem(SETS, "Set5", published)
    return folder


def test_pictures_are_verified_by_their_pixels(made_set):
    pictures = super_resolution("Set5", made_set.parent)
    assert len(pictures) == 5 and pictures[0][0].shape == (3, 6, 7)
    for path in list(made_set.iterdir()):  # another format, and names in another order
        Image.open(path).save(made_set / f"{ord('z') - ord(path.stem)}.bmp")
        path.unlink()
    assert len(super_resolution("Set5", made_set.parent)) == 5


def test_pictures_in_an_inner_folder_or_one_from_the_environment(made_set, tmp_path, monkeypatch):
    inner = tmp_path / "super_resolution"
    inner.mkdir()
    made_set.rename(inner / "Set5")
    assert len(super_resolution("Set5", tmp_path)) == 5
    monkeypatch.setenv("TINYGRAPH_DATA", str(inner))
    assert len(super_resolution("Set5")) == 5


def test_another_pixel_or_a_missing_picture_is_refused(made_set):
    path = made_set / "c.png"
    array = np.asarray(Image.open(path)).copy()
    array[3, 3, 1] ^= 1
    Image.fromarray(array).save(path)
    with pytest.raises(DatasetError, match="Set5: expected the published pictures"):
        super_resolution("Set5", made_set.parent)
    assert len(super_resolution("Set5", made_set.parent, verify=False)) == 5
    path.unlink()
    with pytest.raises(DatasetError, match="Set5: expected 5 pictures, got 4"):
        super_resolution("Set5", made_set.parent)


def test_a_damaged_picture_is_named(made_set):
    path = made_set / "d.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DatasetError, match=r"d\.png: expected an intact image"):
        super_resolution("Set5", made_set.parent)


def test_absent_pictures_and_other_names(tmp_path, monkeypatch):
    monkeypatch.delenv("TINYGRAPH_DATA", raising=False)
    with pytest.raises(DatasetError, match=r"T91: expected a folder .* Way out: name the folder"):
        super_resolution("T91")
    with pytest.raises(DatasetError, match="Set14: expected the file, got nothing of that name"):
        super_resolution("Set14", tmp_path)
    with pytest.raises(ArgumentError, match="did you mean 'Set5'"):
        super_resolution("set5")


def test_the_real_pictures():
    folder = set5_folder().parents[1]
    counts = [len(super_resolution(name, folder)) for name in ("T91", "Set5", "Set14")]
    assert counts == [91, 5, 14]


# ---- colour -------------------------------------------------------------------------------------


def test_luma_and_chroma_by_hand():
    """BT.601 in 8 bits: white 235, 128, 128; black 16, 128, 128; and the three primaries."""
    colours = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    expected = np.array(
        [
            [235, 128, 128],
            [16, 128, 128],
            [81.481, 90.203, 240],
            [144.553, 53.797, 34.214],
            [40.966, 240, 109.786],
        ]
    )
    rgb = colours.T[:, None]  # (3, 1, 5)
    np.testing.assert_allclose(255 * to_ycbcr(rgb)[:, 0].T, expected, atol=1e-9)
    np.testing.assert_allclose(255 * luma(rgb)[0, 0], expected[:, 0], atol=1e-9)


def test_colour_comes_back():
    rgb = np.random.default_rng(1).random((3, 4, 5)).astype(np.float32)
    np.testing.assert_allclose(to_rgb(to_ycbcr(rgb)), rgb, atol=1e-6)
    assert to_rgb(to_ycbcr(rgb) + np.float32(0.9)).max() == 1  # clipped


# ---- pairs and crops ----------------------------------------------------------------------------


def made_pair(height=40, width=50, name="made"):
    high = np.arange(height * width, dtype=np.float32).reshape(1, height, width)
    return Pair(name, high + 0.5, high)


def test_pairs_are_cut_to_a_multiple_of_the_scale_and_lose_detail():
    rgb = np.random.default_rng(2).random((3, 32, 35)).astype(np.float32)
    (pair,) = pairs([("noise", rgb)], 3)
    assert pair.low.shape == pair.high.shape == (1, 30, 33)
    np.testing.assert_array_equal(pair.high, luma(rgb)[:, :30, :33])
    assert pair.low.std() < 0.5 * pair.high.std()  # noise is what shrinking takes away


def test_crops_on_a_grid():
    data = Crops("grid", size=33, stride=14, margin=6).cut([made_pair(), made_pair(33, 33)])
    assert data.inputs.shape == (3, 1, 33, 33) and data.labels.shape == (3, 1, 21, 21)
    corners = data.inputs[:, 0, 0, 0] - 0.5
    assert corners.tolist() == [0, 14, 0]  # of 40 x 50: rows 0, columns 0 and 14; of 33 x 33: one
    np.testing.assert_array_equal(data.labels, data.inputs[:, :, 6:27, 6:27] - 0.5)


def test_random_crops_are_fixed_by_the_seed():
    many = made_pair(120, 130)
    cut = [Crops("random", 33, 14, 6, seed).cut([many]) for seed in (0, 0, 1)]
    assert len(cut[0]) == 7 * 7  # as many as on the grid
    np.testing.assert_array_equal(cut[0].inputs, cut[1].inputs)
    corners = [set(part.inputs[:, 0, 0, 0]) for part in cut]
    assert corners[0] != corners[2] and len(corners[0]) > 40
    np.testing.assert_array_equal(cut[0].labels, cut[0].inputs[:, :, 6:27, 6:27] - 0.5)


def test_crops_larger_than_all_pictures():
    with pytest.raises(ArgumentError, match="crop: expected at most the size of the pictures"):
        Crops(size=41).cut([made_pair()])


def test_crops_are_made_once(tmp_path, monkeypatch):
    rgb = np.random.default_rng(3).random((3, 66, 66)).astype(np.float32)
    found = Collections([("noise", rgb)], [], [], "", "digest")
    first = prepared(found, 3, Crops(), tmp_path)
    monkeypatch.setattr(srcnn_samples, "pairs", lambda *_: pytest.fail("cut again"))
    again = prepared(found, 3, Crops(seed=5), tmp_path)  # a grid draws nothing
    np.testing.assert_array_equal(first.inputs, again.inputs)
    np.testing.assert_array_equal(first.labels, again.labels)
    monkeypatch.undo()
    with pytest.warns(match="made with the settings"):
        assert prepared(found, 3, Crops(margin=5), tmp_path).labels.shape == (9, 1, 23, 23)
    others = Collections([("other", 1 - rgb)], [], [], "", "another digest")
    assert (prepared(others, 3, Crops(), tmp_path).inputs != first.inputs).any()


@pytest.mark.parametrize("size", [3, 7, 10, 25])
def test_portions_go_through_all_samples_pass_after_pass(size):
    data = ArrayDataset(np.arange(10), np.arange(10))
    first = Portions(data, size, seed=4)
    taken = [first.for_epoch(epoch)[:][0] for epoch in range(20)]
    whole = np.concatenate(taken)
    passes = whole[: len(whole) // 10 * 10].reshape(-1, 10)
    np.testing.assert_array_equal(np.sort(passes, axis=1), np.tile(np.arange(10), (len(passes), 1)))
    assert len({tuple(row) for row in passes.tolist()}) > 1
    assert len(first) == size and first[size - 1][0] == taken[0][-1]
    np.testing.assert_array_equal(first.for_epoch(3)[np.array([2, 0])][0], taken[3][[2, 0]])


# ---- PSNR and SSIM ------------------------------------------------------------------------------


def test_psnr_by_hand():
    x, y = np.array([[10.0, 20.0]]), np.array([[13.0, 16.0]])
    assert psnr(x, y) == pytest.approx(10 * math.log10(255**2 / 12.5))
    assert psnr(x, x) == math.inf


def test_ssim_by_loops():
    """The formula of Wang et al., window by window."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (14, 13)).astype(float)
    y = np.clip(x + rng.normal(0, 30, x.shape), 0, 255)
    offsets = np.arange(11) - 5
    window = np.exp(-(offsets[:, None] ** 2 + offsets**2) / (2 * 1.5**2))
    window /= window.sum()
    c1, c2 = (0.01 * PEAK) ** 2, (0.03 * PEAK) ** 2
    found = []
    for i in range(4):
        for j in range(3):
            a, b = x[i : i + 11, j : j + 11], y[i : i + 11, j : j + 11]
            ma, mb = (window * a).sum(), (window * b).sum()
            va, vb = (window * (a - ma) ** 2).sum(), (window * (b - mb) ** 2).sum()
            cov = (window * (a - ma) * (b - mb)).sum()
            found.append(
                (2 * ma * mb + c1) * (2 * cov + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2))
            )
    assert ssim(x, y) == pytest.approx(np.mean(found), rel=1e-10)
    assert 0.3 < ssim(x, y) < 0.99


def test_quality_of_what_cannot_be_compared():
    with pytest.raises(ShapeError, match="psnr: y: expected the shape"):
        psnr(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="at least 11 by 11"):
        ssim(np.zeros((10, 20)), np.zeros((10, 20)))
    with pytest.raises(ArgumentError, match="at least one to measure on"):
        means([])


def test_levels_are_rounded_clipped_and_without_border():
    image = np.pad(np.array([[-0.1, 0.5], [0.499, 1.2]]), 3)
    assert levels(image, 3).tolist() == [[0, 128], [127, 255]]


def test_bicubic_on_set5():
    """30.39 dB and 0.8682, as the paper's table gives for bicubic interpolation by 3."""
    pictures = super_resolution("Set5", set5_folder().parents[1])
    found = [
        (levels(low[0], 3), levels(high[0], 3))
        for _, low, high in pairs(srcnn_samples._named(pictures), 3)
    ]
    assert np.mean([psnr(*pair) for pair in found]) == pytest.approx(30.39, abs=0.01)
    assert np.mean([ssim(*pair) for pair in found]) == pytest.approx(0.8682, abs=0.0005)
