"""The page that `make gpu` writes: sections, how they ended, what lost, what a rehearsal says."""

import importlib

from benchmarks.children import ROOT
from benchmarks.gpu import SECTIONS, page, section
from benchmarks.gpu.room import Room, WallClock
from benchmarks.report import Table


def test_sections_can_be_read_back_and_what_lost_stands_on_top(tmp_path):
    result = page.Result("Title", blocks=["words"], left_out=["a tool is absent"])
    result.aim("slow thing", 0.4, 0.85)
    result.aim("fast thing", 0.9, 0.85)
    result.aim("no number", float("nan"), 0.85)
    broken = page.error_text("Conv", "Traceback: no memory", rehearse=False)
    made = page.Page(tmp_path / "page.md", ["gemm", "conv"])
    made.begin("GPU, today", "- about", keep=False)
    made.put("conv", broken, page.FAILED)
    made.put("gemm", page.section_text(result, {}, rehearse=False), page.FINISHED)
    assert list(made.sections) == ["gemm", "conv"]  # the order of the list, not of arrival
    assert made.sections["conv"] == page.Section(broken, page.FAILED)
    text = made.path.read_text()
    top = text.partition("<!-- section")[0]
    assert top.startswith("# GPU, today\n\n- about\n\n## What lost")
    assert "- slow thing: 0.40, the aim is 0.85" in top and "- no number: nan" in top
    assert "fast thing" not in top and "Sections that failed: conv." in top
    assert "- left out: a tool is absent" in text and "no memory" in text
    assert page.REHEARSAL not in text
    made.begin("GPU, today", "- about", keep=True)
    assert made.path.read_text() == text
    made.begin("GPU, today", "- about", keep=False)
    assert not made.sections


def test_a_table_without_rows_is_left_out():
    shown, empty = Table(["size", "ms"], [["256", "0.5"]]), Table(["kernel", "us"])
    text = page.section_text(page.Result("Title", blocks=[shown, empty]), {}, False)
    assert "| 256 | 0.5 |" in text and "kernel" not in text


def test_a_rehearsal_says_so_and_nothing_lost_or_won(tmp_path):
    result = page.Result("Title")
    result.aim("slow thing", 0.4, 0.85)
    made = page.Page(tmp_path / "page.md", ["gemm"], rehearse=True)
    made.begin("T", "", keep=False)
    made.put("gemm", page.section_text(result, {}, rehearse=True), page.FINISHED)
    text = made.path.read_text()
    assert "slow thing" not in text and "Nothing was measured." in text
    assert text.count(page.REHEARSAL) == 2


def test_what_a_stopped_section_had_found_stays(tmp_path):
    made = page.Page(tmp_path / "page.md", ["gemm"])
    made.begin("T", "", keep=False)
    result = page.Result("GEMM", blocks=["| 256 | 0.5 |"])
    room = Room("cpu", WallClock())
    room.on_news(lambda r: made.put("gemm", page.section_text(r, {}, False), page.BEGUN))
    room.tell(result)
    made.stop("gemm", "stopped at its limit of 150 s", "a last word")
    found = made.sections["gemm"]
    assert found.state == page.BEGUN and "| 256 | 0.5 |" in found.text
    assert "**Stopped:** stopped at its limit of 150 s" in found.text
    assert "a last word" in found.text
    assert "stopped before their end: gemm." in made.path.read_text()


def test_a_section_that_breaks_has_its_error_on_the_page(monkeypatch, tmp_path):
    """Under what it had found before."""

    def breaks(room):
        result = page.Result(conv.TITLE, blocks=["a first row"])
        room.tell(result)
        return 1 / 0

    conv = importlib.import_module("benchmarks.gpu.conv")
    monkeypatch.setattr(conv, "run", breaks)
    made = page.Page(tmp_path / "page.md", list(SECTIONS), rehearse=True)
    made.begin("T", "", keep=False)
    assert not section.measure("conv", Room("emulator", WallClock(), rehearse=True), made)
    found = made.sections["conv"]
    assert found.state == page.FAILED and "ZeroDivisionError" in found.text
    assert f"{ROOT}/" not in found.text and "tests/benchmarks/test_gpu_page.py" in found.text
    assert "a first row" in found.text and found.text.count(conv.TITLE) == 1
