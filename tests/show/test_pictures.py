"""Feature maps, confusion matrix, histograms, samples: what was drawn is read back."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.base.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)


# ---- feature maps -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7, 4, 5), (1, 7, 4, 5)])
def test_every_map_lies_in_its_tile_in_the_common_scale(shape, drawn, tmp_path):
    from matplotlib import colormaps

    maps = RNG.standard_normal(shape)
    tg.show.feature_maps(tg.Tensor(maps), tmp_path / "maps.png")
    axes, bar = drawn[0].axes
    sheet, largest = axes.images[0].get_array(), np.abs(maps).max()
    columns = (sheet.shape[1] - 1) // 6
    assert sheet.shape[0] == -(-7 // columns) * 5 + 1
    for k, tile in enumerate(maps.reshape(7, 4, 5)):
        top, left = k // columns * 5 + 1, k % columns * 6 + 1
        expected = colormaps["RdBu_r"]((tile + largest) / (2 * largest))
        np.testing.assert_allclose(sheet[top : top + 4, left : left + 5], expected, atol=1e-9)
    assert bar.get_ylim() == (-largest, largest)


def test_maps_without_negative_numbers_start_at_0(drawn, tmp_path):
    tg.show.feature_maps(np.array([[[0.5, 2.0]]]), tmp_path / "maps.png")
    assert drawn[0].axes[1].get_ylim() == (0, 2.0)
    tg.show.feature_maps(np.zeros((3, 2, 2)), tmp_path / "maps.svg")
    assert drawn[1].axes[1].get_ylim() == (0, 1.0)


def test_each_scale_stretches_every_map_and_keeps_constant_ones_dark(drawn, tmp_path):
    from matplotlib import colormaps

    faint = np.array([[1.0, 1.001], [1.0, np.nan]])
    maps = np.stack([faint, 1000 * faint, np.full((2, 2), 5.0), np.full((2, 2), np.inf)])
    tg.show.feature_maps(maps, tmp_path / "maps.png", scale="each")
    sheet = drawn[0].axes[0].images[0].get_array()
    columns = (sheet.shape[1] - 1) // 3
    tiles = [sheet[k // columns * 3 + 1 :, k % columns * 3 + 1 :][:2, :2] for k in range(4)]
    low, high = (colormaps["viridis"](x) for x in (0.0, 1.0))
    for tile in tiles[:2]:
        np.testing.assert_allclose(tile, [[low, high], [low, (0, 0, 0, 1)]])
    np.testing.assert_allclose(tiles[2], np.broadcast_to(low, (2, 2, 4)))
    np.testing.assert_allclose(tiles[3], np.broadcast_to((0, 0, 0, 1), (2, 2, 4)))
    assert [t.get_text() for t in drawn[0].axes[1].get_yticklabels()] == ["min", "max"]


def test_one_of_several_samples(drawn, tmp_path):
    maps = np.stack([np.zeros((2, 3, 3)), np.full((2, 3, 3), 7.0)])
    tg.show.feature_maps(maps, tmp_path / "maps.png", sample=1)
    assert drawn[0].axes[1].get_ylim() == (0, 7.0)
    assert drawn[0].axes[0].get_title() == "2 maps of 3 × 3"


@pytest.mark.parametrize(
    ("maps", "options", "error"),
    [
        (np.zeros((3, 3)), {}, ShapeError),
        (np.zeros((0, 3, 3)), {}, ShapeError),
        (np.zeros((1, 3, 3), bool), {}, DtypeError),
        (np.zeros((2, 1, 3, 3)), {"sample": 2}, ArgumentError),
        (np.zeros((2, 1, 3, 3)), {"sample": -1}, ArgumentError),
        (np.zeros((1, 3, 3)), {"scale": "own"}, ArgumentError),
        (np.zeros((5000, 1, 1)), {}, ArgumentError),
        (np.zeros((2, 3000, 3000), np.float32), {}, ArgumentError),
    ],
)
def test_feature_maps_refuses(maps, options, error, tmp_path):
    with pytest.raises(error, match=r"show\.feature_maps: \w+: expected"):
        tg.show.feature_maps(maps, tmp_path / "maps.png", **options)


# ---- confusion matrix -------------------------------------------------------------------------


def counted(labels, predictions, number):
    """The matrix, one sample at a time."""
    counts = [[0] * number for _ in range(number)]
    for truth, predicted in zip(labels, predictions, strict=True):
        counts[truth][predicted] += 1
    return counts


def cells(axes):
    """(row, column) -> the number that is written there."""
    return {
        (round(t.get_position()[1]), round(t.get_position()[0])): int(t.get_text())
        for t in axes.texts
    }


def test_rows_are_the_truth_and_cells_hold_counts(drawn, tmp_path):
    labels, predictions = RNG.integers(0, 4, 200), RNG.integers(0, 4, 200)
    tg.show.confusion_matrix(labels, tg.Tensor(predictions), list("abcd"), tmp_path / "m.png")
    axes = drawn[0].axes[0]
    counts = counted(labels, predictions, 4)
    assert cells(axes) == {(t, p): counts[t][p] for t in range(4) for p in range(4) if counts[t][p]}
    shown = axes.images[0].get_array()
    for t in range(4):
        for p in range(4):
            assert shown[t, p] == pytest.approx(counts[t][p] / sum(counts[t]))
    assert [t.get_text() for t in axes.get_yticklabels()] == list("abcd")
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("true class", "predicted class")


def test_the_accuracy_of_each_class_stands_beside_its_row(drawn, tmp_path):
    tg.show.confusion_matrix([0, 0, 0, 0, 2], [0, 0, 0, 1, 1], path=tmp_path / "m.png")
    (right,) = drawn[0].axes[0].child_axes
    assert [t.get_text() for t in right.get_yticklabels()] == ["75.0%", "–", "0.0%"]
    assert drawn[0].axes[0].get_title() == "3 of 5 right: accuracy 0.6000"


@pytest.mark.second
@pytest.mark.parametrize(("number", "written"), [(1, True), (2, True), (30, True), (400, False)])
def test_numbers_are_left_out_where_cells_are_small(number, written, drawn, tmp_path):
    labels = np.arange(number).repeat(3)
    tg.show.confusion_matrix(labels, labels, path=tmp_path / "m.png")
    assert len(drawn[0].axes[0].texts) == (number if written else 0)


@pytest.mark.second
@pytest.mark.parametrize("number", [2, 3, 12, 100])
def test_nothing_of_the_matrix_is_cut_off_or_overlaps(number, drawn, tmp_path):
    names = [f"a long name of class {k}" for k in range(number)]
    labels = np.arange(number).repeat(2)
    tg.show.confusion_matrix(labels, labels, names, tmp_path / "m.png")
    figure = drawn[0]
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    axes = figure.axes[0]
    page = figure.bbox
    right = axes.child_axes[0]
    parts = [
        axes.xaxis.label,
        axes.yaxis.label,
        right.yaxis.label,
        axes.title,
        figure.axes[1].yaxis.label,
        *axes.get_xticklabels(),
        *axes.get_yticklabels(),
    ]
    for part in parts:
        box = part.get_window_extent(renderer)
        assert box.x0 >= page.x0 - 1 and box.y0 >= page.y0 - 1, part
        assert box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1, part
    for labels_of in (axes.get_xticklabels(), axes.get_yticklabels()):
        boxes = [t.get_window_extent(renderer) for t in labels_of]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_a_class_name_is_no_mathematics(drawn, tmp_path):
    names = ["$x^2$", "a\0b"]
    path = tg.show.confusion_matrix([0, 1], [0, 1], names, tmp_path / "m.svg")
    shown = [t.get_text() for t in drawn[0].axes[0].get_yticklabels()]
    assert shown == [r"\$x^2\$", "a\ufffdb"]
    assert path.exists()


BAD_LABELS = [
    ({"labels": []}, ShapeError),
    ({"labels": [[0, 1]]}, ShapeError),
    ({"labels": [0.0, 1.0]}, DtypeError),
    ({"labels": [True, False]}, DtypeError),
    ({"labels": [0, -1]}, ArgumentError),
    ({"labels": [0, 10**9]}, ArgumentError),
    ({"predictions": [0]}, ShapeError),
    ({"predictions": [[0.1, 0.9], [0.5, 0.5]]}, ShapeError),
    ({"predictions": [0, 2]}, ArgumentError),  # two names only
    ({"classes": "ab"}, ArgumentError),
    ({"classes": 2}, ArgumentError),
    ({"classes": ["a"]}, ArgumentError),
    ({"classes": list(range(2000))}, ArgumentError),
]


@pytest.mark.parametrize(("change", "error"), BAD_LABELS)
def test_labels_that_are_refused(change, error, tmp_path):
    good = {"labels": [0, 1], "predictions": [1, 1], "classes": ["a", "b"]}
    with pytest.raises(error, match=r"show\.confusion_matrix: \w+: expected"):
        tg.show.confusion_matrix(**{**good, **change}, path=tmp_path / "m.png")
    with pytest.raises(error, match=r"show\.samples: \w+: expected"):
        tg.show.samples(np.zeros((2, 3, 3)), **{**good, **change}, path=tmp_path / "s.png")
    assert not list(tmp_path.iterdir())


# ---- histograms -------------------------------------------------------------------------------


def test_a_panel_for_each_array_of_floats(drawn, tmp_path):
    w = RNG.normal(3.0, 2.0, (50, 20))
    state = {"w": w, "steps": np.array([3]), "b": tg.Tensor([1.0, np.nan, 1.0])}
    tg.show.histograms(state, tmp_path / "h.png")
    first, second = [a for a in drawn[0].axes if a.axison]
    assert first.get_title() == f"w\n(50, 20)  mean {w.mean():.3g}, std {w.std():.3g}"
    assert second.get_title() == "b\n(3,)  mean 1, std 0, 1 not finite"
    counts, edges, _ = first.patches[0].get_data()
    assert counts.sum() == 1000
    numbers = sorted(w.ravel())
    for k, count in enumerate(counts[:-1]):
        assert count == sum(1 for x in numbers if edges[k] <= x < edges[k + 1])
    assert second.patches[0].get_data().values.sum() == 2


@pytest.mark.parametrize(
    "values", [[np.nan], [], [0.0, 0.0], [1e30], [1e-30, 2e-30], [0.0, 5e-324]]
)
def test_odd_distributions_are_drawn(values, drawn, tmp_path):
    tg.show.histograms({"w": np.array(values)}, tmp_path / "h.png")
    counts = drawn[0].axes[0].patches[0].get_data().values
    assert counts.sum() == sum(np.isfinite(values))


@pytest.mark.second
def test_a_model_shows_all_of_its_parameters(drawn, tmp_path):
    model = tg.nn.Sequential(*[tg.nn.Linear(2, 2) for _ in range(4)])
    tg.show.histograms(model, tmp_path / "h.png")
    titles = [a.get_title().splitlines()[0] for a in drawn[0].axes if a.axison]
    assert titles == [name for name, _ in model.named_parameters()]


@pytest.mark.parametrize("state", [None, [], tg.nn.Linear, {}, {"n": np.array([1])}, {"x": "text"}])
def test_histograms_refuses(state, tmp_path):
    with pytest.raises(ArgumentError, match=r"show\.histograms: state_or_model: expected"):
        tg.show.histograms(state, tmp_path / "h.png")
    many = {str(k): np.ones(1) for k in range(201)}
    with pytest.raises(ArgumentError, match="at most 200"):
        tg.show.histograms(many, tmp_path / "h.png")


# ---- samples ----------------------------------------------------------------------------------


def tiles(figure):
    """(title, image, frame colour) of each image."""
    return [
        (a.get_title(), np.asarray(a.images[0].get_array()), a.spines["left"].get_edgecolor())
        for a in figure.axes
        if a.images
    ]


def test_wrong_samples_are_named_and_framed(drawn, tmp_path):
    images = np.zeros((3, 1, 4, 4), np.float32)
    images[1] = 1.0
    tg.show.samples(images, [0, 1, 1], [0, 0, 1], ["cat", "dog"], tmp_path / "s.png")
    shown = tiles(drawn[0])
    assert [title for title, _, _ in shown] == ["cat", "dog → cat ✗", "dog"]
    assert [int(image.min()) for _, image, _ in shown] == [0, 255, 0]
    assert shown[0][2] == shown[2][2] != shown[1][2]
    assert drawn[0].get_suptitle() == "3 samples, 1 wrong"


def test_wrong_ones_first_and_at_most_so_many(drawn, tmp_path):
    images = np.arange(6, dtype=np.uint8)[:, None, None] * np.ones((6, 2, 2), np.uint8)
    options = {"path": tmp_path / "s.png", "limit": 4}
    labels, predictions = [0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1]
    tg.show.samples(images, labels, predictions, wrong_first=True, **options)
    assert [int(i.flat[0]) for _, i, _ in tiles(drawn[0])] == [2, 5, 0, 1]
    assert drawn[0].get_suptitle() == "4 of 6 samples, 2 wrong in all"
    tg.show.samples(images, labels, predictions, **options)
    assert [int(i.flat[0]) for _, i, _ in tiles(drawn[1])] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (np.array([[[0, 255]]], np.uint8), [0, 255]),
        (np.array([[[0.25, 0.5]]]), [64, 128]),  # inside [0, 1]: as they are
        (np.array([[[-1.0, 3.0]]]), [0, 255]),  # else one scale
        (np.array([[[0.0, 10.0]], [[5.0, 5.0]]]), [0, 255]),
        (np.array([[[np.nan, 1.0]]]), [0, 255]),
        (np.array([[[2.0, 2.0]]]), [0, 0]),
    ],
)
def test_brightness(images, expected, drawn, tmp_path):
    zeros = np.zeros(len(images), int)
    tg.show.samples(images, zeros, zeros, path=tmp_path / "s.png")
    assert tiles(drawn[0])[0][1].ravel().tolist() == expected


def test_colour_images_keep_their_colours(drawn, tmp_path):
    images = RNG.integers(0, 256, (2, 3, 5, 4)).astype(np.uint8)
    tg.show.samples(images, [0, 1], [0, 1], path=tmp_path / "s.png")
    for k, (_, image, _) in enumerate(tiles(drawn[0])):
        for c in range(3):
            assert np.array_equal(image[..., c], images[k, c])


@pytest.mark.parametrize(
    ("images", "options", "error"),
    [
        (np.zeros((2, 4)), {}, ShapeError),
        (np.zeros((2, 2, 4, 4)), {}, ShapeError),
        (np.zeros((2, 4, 4, 3)), {}, ShapeError),  # channels last
        (np.zeros((3, 4, 4)), {}, ShapeError),  # one too many
        (np.zeros((2, 0, 4)), {}, ShapeError),
        (np.zeros((2, 4, 4), complex), {}, DtypeError),
        (np.zeros((2, 4, 4)), {"limit": 0}, ArgumentError),
        (np.zeros((2, 4, 4)), {"limit": 2.0}, ArgumentError),
    ],
)
def test_samples_refuses(images, options, error, tmp_path):
    with pytest.raises(error, match=r"show\.samples: \w+: expected"):
        tg.show.samples(images, [0, 1], [0, 1], path=tmp_path / "s.png", **options)


# ---- all of them ------------------------------------------------------------------------------

DRAW = {
    "feature_maps": lambda path: tg.show.feature_maps(np.ones((1, 2, 2)), path),
    "confusion_matrix": lambda path: tg.show.confusion_matrix([0, 1], [0, 1], None, path),
    "histograms": lambda path: tg.show.histograms({"w": np.ones(3)}, path),
    "samples": lambda path: tg.show.samples(np.ones((1, 2, 2)), [0], [0], None, path),
}


@pytest.mark.parametrize("name", DRAW)
def test_paths_and_formats(name, tmp_path):
    for suffix, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        path = DRAW[name](tmp_path / f"picture{suffix}")
        assert path.read_bytes().startswith(magic)
    for bad in ("picture", "picture.bmp", "absent/picture.png"):
        with pytest.raises(ArgumentError, match=rf"show\.{name}: path"):
            DRAW[name](tmp_path / bad)


@pytest.mark.parametrize("name", DRAW)
def test_without_matplotlib_the_error_names_the_extra(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"'\.\[plot\]'"):
        DRAW[name](tmp_path / "picture.png")
