"""The documentation tells the truth: its code runs, its pictures are those that are drawn today."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tinygraph as tg
from tests import rooms
from tests.browser import dom
from tinygraph import ops
from tinygraph.engine.op import registry

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = ["README.md", "docs/index.md", "docs/tutorial.md", "docs/graph.md", "docs/plan.md"]
PAGES += ["docs/steps.md", "docs/plan_fast.md", "docs/profile.md", "docs/your_own_data.md"]
PAGES += ["docs/large_data.md", "docs/distributed.md"]
PAGES += ["docs/other_libraries.md", "docs/onnx.md"]


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


@pytest.mark.parametrize("what", ["property", "method"])
def test_the_text_of_a_property_has_no_type_of_its_own(what):
    """`Matrices transposed: the last two axes.` is one sentence, and no type of a text."""
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    attributes = script("attributes")
    lines = ["Matrices transposed: the last two axes swapped.", "", "More: of it."]
    hidden = [*lines]
    attributes.keep_whole(what, hidden)
    made = napoleon.NumpyDocstring(hidden, what=what, name="mT").lines()
    assert attributes.whole_again(made)[: len(lines)] == lines


def test_attributes_that_are_described_together_have_a_field_each():
    text = [
        "Text: a, b.",
        "",
        ":ivar epoch, steps: Epochs and",
        "                    batches.",
        ":vartype epoch, steps: int",
        ":ivar name: One.",
    ]
    assert script("attributes").apart(text) == [
        "Text: a, b.",
        "",
        ":ivar epoch: Epochs and",
        "                    batches.",
        ":ivar steps: Epochs and",
        "                    batches.",
        ":vartype epoch: int",
        ":vartype steps: int",
        ":ivar name: One.",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs_in_order(page, tmp_path, monkeypatch, capsys):
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


def test_the_pictures_are_up_to_date(tmp_path):
    """Where this fails: python docs/draw_pictures.py, look at the pictures, and commit them."""
    for drawn in script("draw_pictures").draw_all(tmp_path):
        assert drawn.read_bytes() == (ROOT / "docs/images" / drawn.name).read_bytes(), drawn.name


@pytest.mark.second
def test_pages_that_are_shown_live_are_made(tmp_path):
    rooms = script("live_pages"), script("live_kernels")
    made = {page.name for room in rooms for page in room.make_all(tmp_path / "pages")}
    pages = (ROOT / "docs").rglob("*.md")
    shown = {
        name
        for page in pages
        for name in re.findall(r'<iframe class="live" src="[./]*pages/([^"#]*)', page.read_text())
    }
    assert shown <= made and {"digits.html", "fan_out.html"} <= shown
    assert all(page.stat().st_size < 300_000 for page in (tmp_path / "pages").iterdir())


@pytest.mark.second
def test_pictures_of_launches_show_what_they_are_for(tmp_path):
    """Where this fails: the step has another number; docs/live_kernels.py and the page say it."""
    room = script("live_kernels")
    room.make_all(tmp_path)
    seen = {
        "step_by_step_banks.png": "the request takes 2 turns",
        "step_by_step_sectors.png": "32 sectors of 32 bytes are moved, 1024 bytes",
        "step_by_step_race.png": "two orders of the threads, two outcomes",
    }
    text = room.PAGE.read_text(encoding="utf-8")
    for name, (page, address, _) in room.PICTURES.items():
        assert seen[name] in dom(tmp_path / page, address).text
        assert f"../images/{name}" in text and f"{page}#{address.replace('&', '&amp;')}" in text


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
    assert sorted(named) == sorted(name for name, x in vars(tg.show).items() if callable(x))


def rows_of_the_ops_table() -> list[str]:
    return re.split(r"^   \* - ", script("ops_table").table(), flags=re.MULTILINE)[2:]


def test_the_table_of_ops_has_every_op_and_every_public_function():
    rows = rows_of_the_ops_table()
    files = {cls.__module__ for cls in registry.values() if cls.__module__.startswith(ops.__name__)}
    composites = {getattr(ops, name).__module__ for name in ops.EXPORTS} - files
    assert len(rows) == len(files | composites)
    for name, cls in registry.items():
        if cls.__module__ in files:
            marks = f":func:`~tinygraph.{cls.name}`", f"``{cls.name}``"
            assert [r for r in rows if marks[0] in r or marks[1] in r.split("\n     - ")[0]], name
    for name in ops.EXPORTS:
        own = getattr(ops, name).__name__ == name
        mark = f":func:`~tinygraph.{name}`\n" if own else f"``{name}``"
        assert len([r for r in rows if mark in r.split("\n     - ")[0] + "\n"]) == 1, name


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


@pytest.mark.parametrize(
    "path", sorted(Path(ops.__file__).parent.glob("*/*.py")), ids=lambda p: p.stem
)
def test_a_source_is_cited_once_in_a_file(path):
    """At the top, from where References are made: see ops/common/docstrings.py."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    documented = ast.Module, ast.ClassDef, ast.FunctionDef
    docstrings = [ast.get_docstring(n) for n in ast.walk(module) if isinstance(n, documented)]
    text = re.sub(r"\s+", " ", " ".join(filter(None, docstrings)))
    cited = re.findall(r'"(\w[^"]{20,})"', text)
    assert len(set(cited)) == len(cited)


def test_the_table_of_ops_knows_kernels_and_claims():
    cells = {}
    for row in rows_of_the_ops_table():
        names, kernel, batch, _ = row.split("\n     - ")
        for name in re.findall(r"tinygraph\.(\w+)`", names):
            cells[name] = kernel, re.sub(r"\s+", " ", batch).strip()
    for name, (kernel, _) in cells.items():
        page = sys.modules[getattr(ops, name).__module__]
        assert (kernel == "yes") == Path(page.__file__).with_suffix(".cu").exists()
        assert kernel != "of its ops" or not vars(page).get("Op")
    assert cells["relu"][1] == "map"
    assert cells["conv2d"][1] == "map, none"  # not where the weight carries samples
    assert cells["mse_loss"][1] == "map, sum, none"
    assert cells["transpose"][1] != ""


# ---- sentences of the README that quote --------------------------------------------------------


class _Plain(ast.NodeTransformer):
    """A text without docstrings, types and what only types need."""

    def visit_FunctionDef(self, node):
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node):
        return self._without_docstring(node)

    def visit_Module(self, node):
        return self._without_docstring(node)

    def visit_AnnAssign(self, node):
        return ast.copy_location(ast.Assign([node.target], node.value, lineno=node.lineno), node)

    def _without_docstring(self, node):
        self.generic_visit(node)
        node.body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        return node


def plain(text):
    """The statements of a text, and the names that they import and use."""
    tree = _Plain().visit(ast.parse(text))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imports, rest = set(), []
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            room = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = {alias.asname or alias.name: f"{room}{alias.name}" for alias in node.names}
            imports |= {path for name, path in names.items() if name in used}
        else:
            rest.append(ast.unparse(node))
    return imports, rest


def test_the_op_of_the_readme_is_the_file_s():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (quoted,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "Relu" in code]
    file = (ROOT / "tinygraph/ops/elementwise/relu.py").read_text(encoding="utf-8")
    assert plain(quoted) == plain(file)


def test_figures_of_the_readme():
    """The lines of the engine and of all above it, and what the demo ends with."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    core, whole, above = re.search(
        r"tensor, op and graph are (\d+) lines, all of it ([\d,]+)\. The\s+([\d,]+) lines above",
        text,
    ).groups()
    sizes = rooms.sizes()
    files = [ROOT / f"tinygraph/engine/{name}.py" for name in ("tensor", "op", "graph")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    assert round(lines, -1) == int(core)
    engine = sizes["engine"].lines
    assert round(engine, -2) == int(whole.replace(",", ""))
    package = sum(size.lines for room, size in sizes.items() if room in rooms.FRAMEWORK) - engine
    assert abs(package - int(above.replace(",", ""))) < 1500
    accuracy = re.search(r"make demo .* ends with: test accuracy (0\.\d+)", text)[1]
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert re.search(r"\| digits, .*? \| \d+, \d+ \| (0\.\d+) ", page)[1] == accuracy
