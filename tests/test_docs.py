"""The documentation tells the truth: its code runs, its pictures are those that are drawn today."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinygraph as tg
from tinygraph import ops
from tinygraph.op import registry

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = ["README.md", "docs/tutorial.md", "docs/graph.md", "docs/plan.md", "docs/profile.md"]


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


def script(name: str) -> Any:
    """A module of the folder docs, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_the_session_of_the_guide_prints_what_it_says():
    names: dict[str, Any] = {"__name__": "documentation"}
    for kind, source in code_blocks("docs/add_an_op.md"):
        if kind == "pycon":
            run_session(source, "docs/add_an_op.md", names)


def with_the_op_of_the_guide(copy: Path) -> None:
    """A copy of the project with the four places of the guide, and nothing else, filled in."""
    for folder in ("tinygraph", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    blocks = code_blocks("docs/add_an_op.md")
    page = (ROOT / "docs/add_an_op.md").read_text(encoding="utf-8")
    op, reference, test = [source for kind, source in blocks if kind == "python"]
    (kernel,) = script("refresh_output").blocks(page, "cuda")
    (export,) = re.findall(r"^    (from tinygraph\.ops\.\S+ import \w+)$", page, re.MULTILINE)
    (copy / "tinygraph/ops/softsign.py").write_text(op)
    (copy / "tinygraph/cuda/kernels/softsign.cu").write_text(kernel)
    (copy / "tests/ops/test_softsign.py").write_text(test)
    with (copy / "tests/reference/activations.py").open("a") as file:
        file.write(f"\n\n{reference}")
    exports = copy / "tinygraph/ops/__init__.py"
    text = exports.read_text().replace("\n__all__ = [\n", f'\n{export}\n\n__all__ = ["softsign",\n')
    exports.write_text(text)


def test_the_op_of_the_guide_takes_four_places(tmp_path):
    """Its printed test passes, and so do the tests over all ops and all kernels."""
    with_the_op_of_the_guide(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    about_it = "softsign or test_every_other_file"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        "-k",
        about_it,
        "tests/ops/test_softsign.py",
        "tinygraph/ops/softsign.py",
        "tests/test_registry.py",
        "tests/cuda/test_operation_counts.py",
        "tests/cuda/test_mutations.py",
    ]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    for name in (
        "test_kernel_equals_reference.*emulator",
        "softsign.softsign",
        r"test_every_op_has_a_kernel\w+\[softsign",
        r"emulator_counts\w+\[softsign",
        r"clean_and_right\[softsign",
        r"test_mutant\[softsign",
    ):
        assert re.search(f"{name}.* PASSED", run.stdout), f"{name} was not run"


def test_the_pictures_are_up_to_date(tmp_path):
    """Where this fails: python docs/draw_pictures.py, look at the pictures, and commit them."""
    for drawn in script("draw_pictures").draw_all(tmp_path):
        assert drawn.read_bytes() == (ROOT / "docs/images" / drawn.name).read_bytes(), drawn.name


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda p: p.name
)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_reference_names_every_picture():
    text = (ROOT / "docs/reference/show.rst").read_text(encoding="utf-8")
    named = re.findall(r"^\.\. auto(?:function|class):: (\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(tg.show.__all__)


def rows_of_the_ops_table() -> list[str]:
    return re.split(r"^   \* - ", script("ops_table").table(), flags=re.MULTILINE)[2:]


def test_the_table_of_ops_has_every_op_and_every_public_function():
    rows = rows_of_the_ops_table()
    files = {cls.__module__ for cls in registry.values() if cls.__module__.startswith(ops.__name__)}
    assert len(rows) == len(files)
    for name, cls in registry.items():
        if cls.__module__ in files:
            marks = f":func:`~tinygraph.{cls.name}`", f"``{cls.name}``"
            assert [r for r in rows if marks[0] in r or marks[1] in r.split("\n     - ")[0]], name
    for name in ops.EXPORTS:
        assert len([r for r in rows if f":func:`~tinygraph.{name}`\n" in r]) == 1, name


def test_the_table_of_ops_has_the_mathematics_of_every_file():
    """Every line of a file's docstring but its title and its sources is in the row of that file."""
    rows = rows_of_the_ops_table()
    for cls in registry.values():
        if not cls.__module__.startswith(ops.__name__):
            continue
        text = sys.modules[cls.__module__].__doc__
        formulas = re.findall(r"^    +(\S.*)$", text.split("\nSource")[0], re.MULTILINE)
        assert formulas
        (row,) = [r for r in rows if all(line in r for line in formulas)]
        assert ".. code-block:: text" in row


def test_the_table_of_ops_knows_kernels_and_claims():
    cells = {}
    for row in rows_of_the_ops_table():
        names, kernel, batch, _ = row.split("\n     - ")
        for name in re.findall(r"tinygraph\.(\w+)`", names):
            cells[name] = kernel, re.sub(r"\s+", " ", batch).strip()
    for name, (kernel, _) in cells.items():
        stem = getattr(ops, name).__module__.rpartition(".")[2]
        assert (kernel == "yes") == (ROOT / f"tinygraph/cuda/kernels/{stem}.cu").exists()
    assert cells["relu"][1] == "map"
    assert cells["conv2d"][1] == "map, none"  # not where the weight carries samples
    assert cells["mse_loss"][1] == "map, sum, none"
    assert cells["transpose"][1] != ""
