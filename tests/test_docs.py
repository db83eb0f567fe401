"""The documentation tells the truth: its code runs, its pictures are those that are drawn today."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = ["README.md", "docs/tutorial.md", "docs/graph.md"]


def code_blocks(page: str) -> list[tuple[str, str]]:
    """(kind, source) of the Python blocks of a page; line numbers count from the block."""
    return FENCE.findall((ROOT / page).read_text(encoding="utf-8"))


def run_session(source: str, name: str, names: dict[str, Any]) -> None:
    """Run a block with prompts, and compare what it prints."""
    test = doctest.DocTestParser().get_doctest(source, names, name, name, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)


def run_page(page: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "documentation"}
    for number, (kind, source) in enumerate(code_blocks(page), start=1):
        if kind == "pycon":
            run_session(source, f"{page}, block {number}", names)
        else:
            exec(compile(source, f"{page}, block {number}", "exec"), names)
    return names


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_in_order(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)  # pictures go to a folder of the test's own
    assert code_blocks(page)
    run_page(page)
    if page == "README.md":
        accuracy = re.search(r"test accuracy (0\.\d+)", capsys.readouterr().out)
        assert accuracy and float(accuracy[1]) > 0.95


def test_the_op_of_the_guide_holds_the_contract(tmp_path):
    """Put the printed files where the guide says, in memory, and run the printed test."""
    blocks = code_blocks("docs/add_an_op.md")
    names: dict[str, Any] = {"__name__": "documentation"}
    for kind, source in blocks:
        if kind == "pycon":
            run_session(source, "docs/add_an_op.md", names)
    op, reference, test = [source for kind, source in blocks if kind == "python"]
    (tmp_path / "softsign.py").write_text(op)
    (tmp_path / "test_softsign.py").write_text(test)
    (tmp_path / "added.py").write_text(
        "import tinygraph as tg, softsign\n"
        "from tests import reference\n"
        "tg.softsign = softsign.softsign\n"
        f"exec({reference!r}, vars(reference))\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    plugins = ["-p", "added", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    options = ["-q", "--doctest-modules", "--rootdir", "."]
    command = [sys.executable, "-m", "pytest", *options, *plugins]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"\d\d passed", run.stdout)


def test_the_pictures_are_up_to_date(tmp_path):
    """Where this fails: python docs/draw_pictures.py, look at the pictures, and commit them."""
    spec = importlib.util.spec_from_file_location("draw_pictures", ROOT / "docs/draw_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for drawn in module.draw_all(tmp_path):
        assert drawn.read_bytes() == (ROOT / "docs/images" / drawn.name).read_bytes(), drawn.name


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda p: p.name
)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
