"""Curves and filters: what was drawn is read back from the file."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tinygraph as tg
from tinygraph.show import curves as curves_function

ROWS = [
    {"epoch": 1, "loss": 2.0, "validation_loss": 2.5, "accuracy": 0.25, "seconds": 1.5, "run": "a"},
    {"epoch": 2, "loss": 1.0, "validation_loss": None, "accuracy": 0.5, "seconds": 1.5, "run": "a"},
    {"epoch": 3, "loss": 0.5, "validation_loss": 1.5, "accuracy": 0.75, "seconds": 1.5, "run": "a"},
]


def test_curves_has_a_panel_for_each_metric_and_a_line_for_each_column(drawn, tmp_path):
    curves_function(ROWS, tmp_path / "curves.png")
    panels = drawn[0].axes
    assert [a.get_title() for a in panels] == ["loss", "accuracy"]
    lines = {line.get_label(): line.get_xydata().tolist() for a in panels for line in a.lines}
    assert lines == {
        "loss": [[1, 2.0], [2, 1.0], [3, 0.5]],
        "validation loss": [[1, 2.5], [3, 1.5]],
        "accuracy": [[1, 0.25], [2, 0.5], [3, 0.75]],
    }
    assert all(a.get_legend() for a in panels)


def test_rows_without_an_epoch_are_numbered_from_1(drawn, tmp_path):
    tg.show.curves([{"loss": 3.0}, {"loss": 2.0}], tmp_path / "curves.svg")
    assert drawn[0].axes[0].lines[0].get_xdata().tolist() == [1, 2]


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_the_suffix_decides_the_format(suffix, magic, tmp_path):
    path = tg.show.curves(ROWS, tmp_path / f"curves{suffix}")
    assert path.read_bytes().startswith(magic)


def test_svg_is_valid(tmp_path):
    assert ET.parse(tg.show.curves(ROWS, tmp_path / "curves.svg")).getroot().tag.endswith("svg")


def test_curves_of_what_is_no_rows_names_those_of_fit(tmp_path):
    for rows in (tg.training.Log(), [1.0, 2.0], 3):
        with pytest.raises(tg.errors.ArgumentError, match=r"rows = trainer\.fit\(\.\.\.\)"):
            tg.show.curves(rows, tmp_path / "curves.svg")


@pytest.mark.parametrize("rows", [[], [{}], [{"epoch": 1}], [{"epoch": 1, "note": "text"}]])
def test_curves_refuses_nothing_to_draw(rows, tmp_path):
    with pytest.raises(tg.errors.ArgumentError, match=r"show\.curves: rows: expected"):
        tg.show.curves(rows, tmp_path / "curves.svg")


@pytest.mark.parametrize("name", ["\ud800", r"$\frac$", "a\0b"])
def test_a_name_of_a_metric_is_text(name, drawn, tmp_path):
    """Half a surrogate, out of an edited log, was a TypeError; mathematics a ValueError."""
    tg.show.curves([{name: 1.0}, {name: 2.0}], tmp_path / "curves.png")
    title = drawn[0].axes[0].get_title()
    assert title == name.replace("$", r"\$").replace("\ud800", "\ufffd").replace("\0", "\ufffd")


@pytest.mark.parametrize("largest", [1e308, -1.7e308])
def test_the_largest_floats_are_drawn(largest, tmp_path):
    """Axes have no room around them: they were errors of matplotlib and of numpy."""
    for rows in ([{"loss": largest}], [{"loss": largest}, {"loss": -largest}]):
        assert tg.show.curves(rows, tmp_path / "curves.svg").exists()
    w = np.full((2, 3, 4, 4), largest)
    w[1] = -largest
    assert tg.show.filters(w, tmp_path / "filters.png").exists()
    assert tg.show.feature_maps(w, tmp_path / "maps.png").exists()
    assert tg.show.histograms({"w": w, "c": w[0]}, tmp_path / "histograms.png").exists()


@pytest.mark.parametrize("shape", [(1, 1, 3, 3), (7, 1, 5, 5), (6, 3, 3, 2), (2, 40, 1, 1)])
def test_filters_shows_every_weight_in_its_colour(shape, drawn, tmp_path):
    w = np.random.default_rng(0).standard_normal(shape)
    tg.show.filters(tg.Parameter(w), tmp_path / "filters.png")
    sheet = drawn[0].axes[0].images[0].get_array()
    from matplotlib import colormaps

    scale = np.abs(w).max()
    expected = colormaps["RdBu_r"]((w + scale) / (2 * scale)).reshape(-1, 4)
    seen = {tuple(np.round(c, 6)) for c in sheet.reshape(-1, 4).tolist()}
    assert {tuple(np.round(c, 6)) for c in expected.tolist()} <= seen
    grey = np.all(np.isclose(sheet, (0.75, 0.75, 0.75, 1.0)), axis=-1)
    assert (~grey).sum() == w.size


def test_the_first_filter_lies_at_the_top_left_and_its_scale_is_symmetric(drawn, tmp_path):
    w = np.zeros((4, 1, 2, 2), np.float32)
    w[0, 0, 0, 1], w[3, 0, 1, 0] = -2.0, 1.0
    tg.show.filters(w, tmp_path / "filters.svg")
    axes, bar = drawn[0].axes
    sheet = axes.images[0].get_array()
    assert sheet.shape == (7, 7, 4)  # 2 x 2 tiles of 2 x 2 pixels, a pixel around each
    blue, red = sheet[1, 2], sheet[5, 4]
    assert blue[2] > blue[0]
    assert red[0] > red[2]
    assert bar.get_ylim() == (-2.0, 2.0)


@pytest.mark.parametrize("fill", [0.0, np.nan, np.inf])
def test_filters_without_a_scale_are_drawn(fill, drawn, tmp_path):
    tg.show.filters(np.full((2, 1, 2, 2), fill), tmp_path / "filters.png")
    assert drawn[0].axes[1].get_ylim() == (-1.0, 1.0)
    black = np.all(drawn[0].axes[0].images[0].get_array() == (0.0, 0.0, 0.0, 1.0), axis=-1).sum()
    assert black == (0 if fill == 0 else 8)


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (np.zeros((3, 3)), tg.errors.ShapeError),
        (np.zeros((0, 1, 3, 3)), tg.errors.ShapeError),
        (np.zeros((2, 1, 3, 3), int), tg.errors.DtypeError),
        (np.zeros((5000, 1, 1, 1)), tg.errors.ArgumentError),
    ],
)
def test_filters_refuses(weights, error, tmp_path):
    with pytest.raises(error, match=r"show\.filters: weights: expected"):
        tg.show.filters(weights, tmp_path / "filters.png")


@pytest.mark.parametrize("path", ["picture", "picture.bmp", "absent/picture.png"])
def test_bad_paths(path, tmp_path):
    for function, what in ((tg.show.curves, ROWS), (tg.show.filters, np.ones((1, 1, 2, 2)))):
        with pytest.raises(tg.errors.ArgumentError, match="path"):
            function(what, tmp_path / path)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"'\.\[plot\]'"):
        tg.show.curves(ROWS, tmp_path / "curves.svg")
    with pytest.raises(ImportError, match=r"'\.\[plot\]'"):
        tg.show.filters(np.ones((1, 1, 2, 2)), tmp_path / "filters.svg")


def test_no_pyplot_state(tmp_path):
    sys.modules.pop("matplotlib.pyplot", None)
    tg.show.curves(ROWS, tmp_path / "curves.svg")
    assert "matplotlib.pyplot" not in sys.modules
