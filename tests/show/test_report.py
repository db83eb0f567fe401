"""The report is one page: all parts are on it, nothing is loaded, and nothing given can run."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygraph as tg
from tests.show.elements import Page
from tests.show.graphs import chain, network
from tinygraph.base.errors import ArgumentError, DtypeError, GraphError, ShapeError
from tinygraph.show import ReportContents, report
from tinygraph.show.curves import metric_panels
from tinygraph.show.png import png

RNG = np.random.default_rng(0)
SECTIONS = [
    "curves",
    "samples",
    "confusion",
    "filters",
    "weights",
    "graph",
    "config",
    "environment",
    "log",
]


def write(tmp_path: Path, **parts) -> Page:
    path = report(ReportContents(**parts), tmp_path / "report.html")
    return Page(path.read_text(encoding="utf-8"))


def full() -> dict:
    labels = RNG.integers(0, 3, 60)
    return {
        "title": "a run",
        "result": {"test": {"loss": 0.12345, "accuracy": 0.5}},
        "rows": [
            {"epoch": 1, "loss": 2.0, "validation_loss": 2.5, "accuracy": 0.25, "seconds": 1.5},
            {"epoch": 2, "loss": 1.0, "validation_loss": None, "accuracy": 0.5, "seconds": 1.0},
        ],
        "config": {"recipe": "small", "settings": {"lr": 0.1, "classes": [1, 2]}},
        "environment": {"python": "3.12", "blas": {"name": "some", "threads": None}},
        "state": {"conv.weight": RNG.normal(size=(4, 1, 3, 3)), "steps": np.array([7])},
        "images": RNG.random((60, 1, 6, 6)),
        "labels": labels,
        "predictions": np.where(np.arange(60) < 10, (labels + 1) % 3, labels),
        "classes": ["cat", "dog", "owl"],
        "graph": network(),
    }


def test_every_part_has_its_section(tmp_path):
    page = write(tmp_path, **full())
    assert [a["id"] for a in page.all("section")] == SECTIONS
    assert [a["href"] for a in page.all("a")] == [f"#{name}" for name in SECTIONS]
    assert page.texts["h1"] == page.texts["title"][:1] == ["a run"]
    tiles = dict(zip(page.texts["dt"], page.texts["dd"], strict=True))
    assert tiles == {
        "test loss": "0.1235",
        "test accuracy": "0.5",
        "epochs": "2",
        "training time": "2.5 s",
        "parameters and buffers": "37",
    }


@pytest.mark.parametrize(
    ("parts", "sections"),
    [
        (["result"], []),
        (["rows"], ["curves", "log"]),
        (["labels", "predictions"], ["confusion"]),
        (["labels", "predictions", "images"], ["samples", "confusion"]),
        (["state"], ["filters", "weights"]),
        (["graph"], ["graph"]),
        (["config"], ["config"]),
        (["environment"], ["environment"]),
    ],
)
def test_every_part_is_optional(parts, sections, tmp_path):
    contents = full()
    page = write(tmp_path, **{name: contents[name] for name in parts})
    assert [a["id"] for a in page.all("section")] == sections


EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\0"


def test_nothing_given_becomes_markup(tmp_path):
    parts = full()
    parts |= {
        "title": EVIL,
        "result": {EVIL: EVIL},
        "rows": [{"epoch": 1, "loss": 1.0, EVIL: 2.0, "note": EVIL}],
        "config": {EVIL: {EVIL: [EVIL]}},
        "environment": {"command": EVIL},
        "state": {EVIL: np.ones((2, 1, 3, 3))},
        "classes": [EVIL, EVIL + "2", EVIL + "3"],
        "graph": tg.relu(tg.Parameter([1.0, 2.0], name=EVIL)),
    }
    page = write(tmp_path, **parts)
    assert not page.all("script")
    assert all(not key.startswith("on") for _, a in page.elements for key in a)
    assert all(a["src"].startswith("data:image/png;base64,") for a in page.all("img"))
    assert any("<script>alert(1)</script>" in text for text in page.texts["td"])
    assert EVIL.replace("\0", "\ufffd") in page.texts["h1"]
    many = {"labels": np.arange(40), "predictions": np.arange(40)[::-1], "classes": [EVIL] * 40}
    page = write(tmp_path, **many)
    assert not page.all("script")


def test_the_page_loads_nothing_and_forbids_it(tmp_path):
    page = write(tmp_path, **full())
    (policy,) = page.all("meta", http_equiv=None, **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'")
    source = (tmp_path / "report.html").read_text()
    assert set(re.findall(r"[a-z]+://[^\"' <)]*", source)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\((?!#)", source)
    assert not page.all("link") and not page.all("iframe")


def test_light_dark_and_phone(tmp_path):
    page = write(tmp_path, **full())
    (style,) = page.texts["style"]
    light, dark = (
        set(re.findall(r"(--\w+):", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    )
    assert light == dark  # a colour that the dark lacked would stay as in the light
    assert "prefers-color-scheme: dark" in style
    assert set(re.findall(r"var\((--\w+)\)", style)) - {"--a"} <= light
    assert page.all("meta", name="viewport")[0]["content"].startswith("width=device-width")


def contrast(one: str, other: str) -> float:
    """The contrast of two colours (WCAG 2, 1.4.3)."""
    lights = []
    for colour in (one, other):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        lights.append(0.2126 * r + 0.7152 * g + 0.0722 * b)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_texts_and_lines_stand_out(scheme, tmp_path):
    (style,) = write(tmp_path, result={"a": 1}).texts["style"]
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for name in ("ink", "soft", "link", "wrong"):
        assert contrast(colours[name], colours["page"]) >= 4.5, name
        assert contrast(colours[name], colours["card"]) >= 4.5, name
    for name in ("s0", "s1", "s2", "s3"):
        assert contrast(colours[name], colours["page"]) >= 3, name


def test_curves_pass_through_the_numbers(tmp_path):
    page = write(tmp_path, rows=full()["rows"])
    tips = page.texts["title"][1:]  # the first is that of the page
    assert tips == [
        "epoch 1: loss 2",
        "epoch 2: loss 1",
        "epoch 1: validation loss 2.5",
        "epoch 1: accuracy 0.25",
        "epoch 2: accuracy 0.5",
    ]
    dots = [(float(a["cx"]), float(a["cy"])) for a in page.all("circle")]
    (x1, y1), (x2, y2), (x3, y3) = dots[:3]
    assert x1 == x3 < x2
    assert (y1 - y3) / (y2 - y1) == pytest.approx((2.5 - 2.0) / (2.0 - 1.0), abs=0.01)
    paths = [a["d"] for a in page.all("path") if a["d"].startswith("M") and " L" in a["d"]]
    assert paths[0] == f"M{x1} {y1} L{x2} {y2}"
    assert len(paths) == 2  # the validation loss has one point, and no line


@pytest.mark.parametrize(
    "losses", [[1.0], [0.0, 0.0], [1e-12, 2e-12], [1e30, -1e30], [None, 3.0, float("nan")]]
)
def test_marks_lie_inside_the_chart(losses, tmp_path):
    page = write(tmp_path, rows=[{"epoch": k, "loss": x} for k, x in enumerate(losses)])
    finite = [x for x in losses if x is not None and np.isfinite(x)]
    dots = page.all("circle")
    assert len(dots) == len(finite)
    assert all(58 <= float(a["cx"]) <= 380 and 10 <= float(a["cy"]) <= 196 for a in dots)
    epochs = [t for t in page.texts["text"] if t != "epoch"]
    assert len(epochs) == len(page.texts["text"]) - 1


def test_a_log_without_numbers_has_no_curves(tmp_path):
    page = write(tmp_path, rows=[{"note": "x"}, {"note": None}])
    assert [a["id"] for a in page.all("section")] == ["log"]
    assert page.texts["td"] == ["x", "–"]


def test_the_log_is_there_and_long_ones_are_folded(tmp_path):
    page = write(tmp_path, rows=full()["rows"])
    assert page.texts["th"] == ["epoch", "loss", "validation loss", "accuracy", "seconds"]
    assert page.texts["td"] == ["1", "2", "2.5", "0.25", "1.5", "2", "1", "–", "0.5", "1"]
    assert "open" in page.all("details")[0]
    page = write(tmp_path, rows=[{"loss": 1.0}] * 100)
    assert "open" not in page.all("details")[0]


def test_wrong_samples_come_first(tmp_path):
    parts = full()
    page = write(tmp_path, **{k: parts[k] for k in ("images", "labels", "predictions", "classes")})
    kinds = [a.get("class") for a in page.all("figure")]
    assert kinds == ["wrong"] * 10 + [None] * 38
    captions = page.texts["figcaption"]
    names, labels, predictions = parts["classes"], parts["labels"], parts["predictions"]
    mistakes = [
        f"✗ predicted {names[p]}, is {names[t]}"
        for t, p in zip(labels, predictions, strict=True)
        if t != p
    ]
    assert sorted(captions[:10]) == sorted(mistakes)
    is_class = [names.index(caption.rpartition(" ")[2]) for caption in captions]
    assert is_class[:10] == sorted(is_class[:10])
    assert is_class[10:] == sorted(is_class[10:])
    assert "10 of 60 samples" in page.texts["p"][0]
    image_module = pytest.importorskip("PIL.Image")
    for image in page.all("img"):
        k = int(image["alt"].split()[1].rstrip(","))  # sample k, class ...
        data = base64.b64decode(image["src"].partition(",")[2])
        pixels = np.asarray(image_module.open(io.BytesIO(data)))
        assert np.abs(pixels / 255 - parts["images"][k, 0]).max() <= 0.5 / 255 + 1e-9


def test_mistakes_are_drawn_from_all_classes(tmp_path):
    """Of class 0 there are a hundred, before the two of class 1 and the one of class 2."""
    labels = np.array([0] * 100 + [1, 1, 2])
    images = np.zeros((103, 1, 4, 4), np.float32)
    page = write(tmp_path, images=images, labels=labels, predictions=(labels + 1) % 3)
    captions = page.texts["figcaption"]
    assert captions == [f"✗ predicted {(k + 1) % 3}, is {k}" for k in [0] * 33 + [1, 1, 2]]


def test_a_verdict_stands_under_the_heading_and_images_are_compared(tmp_path):
    images = {"bicubic, 30 dB": np.zeros((4, 6)), "original": np.ones((4, 6))}
    page = write(tmp_path, verdict="better <by> 1 dB", comparison=images)
    assert page.texts["p"] == ["better <by> 1 dB"]
    assert page.texts["figcaption"] == list(images)
    assert page.all("section")[0]["id"] == "comparison"


def test_texts_to_read_and_parts_that_are_coloured(tmp_path):
    parts = [("a<", 0.25), ("\n", 1.5), ("b", 0.0), (" c\n", float("nan"))]
    page = write(tmp_path, texts={"as it stands": "one\n\n two", "in parts": parts})
    assert page.texts["figcaption"] == ["as it stands", "in parts"]
    body = (tmp_path / "report.html").read_text()
    assert '<pre class="text">one\n\n two</pre>' in body
    spans = '<span style="--a:0.25">a&lt;</span><span style="--a:1.00"> </span>\nb'
    assert f'{spans}<span style="--a:1.00"> c</span>\n</pre>' in body
    assert page.all("section")[0]["id"] == "texts"


def test_a_single_epoch_is_a_marked_point_with_its_number(tmp_path):
    page = write(tmp_path, rows=[{"epoch": 1, "loss": 0.25, "validation_loss": 0.5}])
    assert page.texts["text"].count("1") == 1  # the only mark of the epochs
    assert {"0.25", "0.5"} <= set(page.texts["text"])
    assert all(float(circle["r"]) > 4 for circle in page.all("circle"))


def test_large_images_are_thinned_out(tmp_path):
    images = np.zeros((1, 3, 300, 200), np.uint8)
    page = write(tmp_path, images=images, labels=[0], predictions=[0])
    data = base64.b64decode(page.all("img")[0]["src"].partition(",")[2])
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    assert (width, height) == (67, 100)


def test_the_confusion_matrix_counts(tmp_path):
    page = write(tmp_path, labels=[0, 0, 0, 1, 1], predictions=[0, 0, 1, 1, 0], classes=list("abc"))
    cells = page.texts["td"]
    assert cells == ["", "2", "1", "0", "66.7%", "1", "1", "0", "50.0%", "0", "0", "0", "–"]
    kinds = [a["class"] for a in page.all("td")]
    assert kinds[1:4] == ["hit", "miss", "zero"]
    assert "3 of 5 samples were recognized: accuracy 0.6000." in page.texts["p"]


def test_with_many_classes_the_matrix_is_a_picture_and_a_list(tmp_path):
    labels = np.arange(100).repeat(3)
    predictions = labels.copy()
    predictions[:2] = 99
    page = write(tmp_path, labels=labels, predictions=predictions)
    assert page.all("img", class_="heat")
    confused, accuracies = page.texts["table"]
    assert re.sub(r"\s+", " ", confused) == "true classpredictedcount 0992"
    assert accuracies.startswith("033.3%") and "9999" not in accuracies


def test_weights_and_filters(tmp_path):
    state = {
        "a.weight": RNG.normal(size=(70, 1, 5, 5)),
        "a.bias": np.zeros(8),
        "b.weight": RNG.normal(size=(20, 40, 3, 3)),
        "e.weight": RNG.normal(size=(1, 2, 3, 3)),
        "c": np.full(3, np.nan),
        "pointwise": np.ones((2, 2, 1, 1)),
        "d": np.array(3.0),
    }
    page = write(tmp_path, state=state)
    captions = page.texts["figcaption"]
    assert captions[0] == "a.weight 70 filters of 5 × 5, 1 input channel; shown are 64 and 1"
    assert captions[1] == "b.weight 20 filters of 3 × 3, 40 input channels; shown are 16 and 16"
    assert captions[2] == "e.weight 1 filter of 3 × 3, 2 input channels"
    assert [c.split()[0] for c in captions[3:]] == list(state)
    assert captions[7] == "c (3,)  mean nan, std nan, 3 not finite"
    counts = [int(t.split()[0]) for t in page.texts["title"][1:]]
    assert sum(counts) == 70 * 25 + 8 + 20 * 40 * 9 + 18 + 4 + 1
    assert not write(tmp_path, state={"n": np.array([1])}).all("section")


def test_the_graph_is_drawn_inline_and_one_too_large_is_named(tmp_path):
    page = write(tmp_path, graph=network())
    nodes = [a for a in page.all("g") if (a.get("class") or "").startswith("node")]
    assert len(nodes) == 9
    page = write(tmp_path, graph=[chain(6000)], result={"a": 1})
    assert "at most 5000 nodes" in page.texts["p"][0]


def test_it_is_written_over_and_repeats(tmp_path):
    contents = ReportContents(**full())
    first = report(contents, tmp_path / "report.html").read_bytes()
    assert report(contents, tmp_path / "report.html").read_bytes() == first


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({}, ArgumentError),
        ({"title": "only"}, ArgumentError),
        ({"labels": [0]}, ArgumentError),
        ({"predictions": [0]}, ArgumentError),
        ({"images": np.zeros((1, 2, 2))}, ArgumentError),
        ({"labels": [0], "predictions": [0, 1]}, ShapeError),
        ({"labels": [0.5], "predictions": [0]}, DtypeError),
        ({"labels": [3], "predictions": [0], "classes": ["a"]}, ArgumentError),
        ({"labels": [0], "predictions": [0], "images": np.zeros((2, 2, 2))}, ShapeError),
        ({"config": [1]}, ArgumentError),
        ({"state": 3}, ArgumentError),
        ({"rows": ["text"]}, ArgumentError),
        ({"graph": 3}, GraphError),
    ],
)
def test_contents_that_are_refused(parts, error, tmp_path):
    with pytest.raises(error, match=r"show\.report: \w+: expected"):
        write(tmp_path, **parts)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["report", "report.pdf", "absent/report.html"])
def test_bad_paths(path, tmp_path):
    with pytest.raises(ArgumentError, match=r"show\.report: path"):
        report(ReportContents(result={"a": 1}), tmp_path / path)


def test_plain_data_in_place_of_contents_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"expected ReportContents, got dict"):
        report({"result": {}}, tmp_path / "report.html")


@pytest.mark.second
def test_a_report_needs_no_library(tmp_path):
    code = (
        "import sys, numpy as np, tinygraph as tg; "
        "contents = tg.show.ReportContents(rows=[{'loss': 1.0}], state={'w': np.ones((2,1,3,3))},"
        " labels=[0], predictions=[0], images=np.ones((1, 2, 2))); "
        "tg.show.report(contents); "
        "print({'matplotlib', 'graphviz', 'PIL'} & set(sys.modules))"
    )
    root = str(Path(tg.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 1), (4, 7, 3)])
def test_png_is_read_back(shape):
    image_module = pytest.importorskip("PIL.Image")
    pixels = RNG.integers(0, 256, shape).astype(np.uint8)
    read = np.asarray(image_module.open(io.BytesIO(png(pixels))))
    assert np.array_equal(read.reshape(shape), pixels)


def test_rows_of_the_result_are_a_table_and_no_tile(tmp_path):
    rows = [{"name": "bird", "psnr": 30.5}, {"name": "baby", "psnr": 33.0}]
    page = write(tmp_path, result={"test": {"psnr": 31.75}, "pictures": {"test": rows}})
    assert page.texts["dt"] == ["test psnr"]
    assert page.texts["td"] == ["bird", "30.5", "baby", "33"]


def test_a_column_that_ends_in_another_shares_its_panel():
    rows = [{"psnr": 30.0, "bicubic_psnr": 29.0, "top_five_loss": 1.0}]
    panels = {"psnr": ["psnr", "bicubic_psnr"], "top_five_loss": ["top_five_loss"]}
    assert metric_panels(rows) == panels
