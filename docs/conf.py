"""Sphinx configuration: `make docs` builds with warnings as errors."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import attributes  # noqa: E402  # docs/attributes.py
import live_kernels  # noqa: E402  # docs/live_kernels.py
import live_pages  # noqa: E402  # docs/live_pages.py
import names_table  # noqa: E402  # docs/names_table.py
import onnx_table  # noqa: E402  # docs/onnx_table.py
import ops_table  # noqa: E402  # docs/ops_table.py

import tinygraph  # noqa: E402
import tinygraph.ops  # noqa: E402

project = "tinygraph"
author = "tinygraph contributors"
project_copyright = "2026, tinygraph contributors"
version = release = tinygraph.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_parser",
    "sphinx_copybutton",
]
exclude_patterns = [
    "course/example",  # an exercise, which its page shows
    # of the folder generated: parts of other pages
    "_build", "reference/generated/names_table.md", "reference/generated/onnx_table.md",
]  # fmt: skip
default_role = "literal"  # docstrings write `x` for code
nitpicky = False

autodoc_typehints = "none"  # the docstrings say types and shapes together
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # `forward` of a layer says nothing that Module's does not
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # CONTRIBUTING.md links to files of the repository

smartquotes = False  # tables show code: 'cuda' and dtype=... are copied as they stand

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied are the lines behind these
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["ops_table.css", "kernels.css", "pages.css"]
html_title = "tinygraph"
html_theme_options = {
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 2,
}
html_show_sourcelink = False
html_sidebars = {"*": []}  # pages at the top have no pages below them to list


def write_ops_page() -> None:
    """reference/generated/ops.rst: a section for each op file, with its mathematics and functions.

    Made from `tinygraph.ops.EXPORTS`, so that a new op appears by itself.
    """
    modules: dict[str, list[str]] = {}
    for name in sorted(tinygraph.ops.EXPORTS):
        function = getattr(tinygraph.ops, name)
        if function.__name__ == name:  # else it is another name of it
            modules.setdefault(function.__module__, []).append(name)
    lines = ["Ops", "===", "", ".. currentmodule:: tinygraph", ""]
    for module, names in sorted(modules.items()):
        title = ", ".join(names) if len(names) < 4 else module.rpartition(".")[2].replace("_", " ")
        lines += [title, "-" * len(title), "", ".. code-block:: text", ""]
        lines += [f"    {line}" for line in inspect.getdoc(sys.modules[module]).splitlines()]
        lines += ["", *[ops_table.described(name) for name in names]]
    page = Path(__file__).parent / "reference" / "generated" / "ops.rst"
    page.parent.mkdir(exist_ok=True)
    text = "\n".join(lines)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def as_plain_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code`: elsewhere | and * are no markup."""
    for i, line in enumerate(lines):
        if ">>>" in line or line.lstrip().startswith("..."):
            continue
        pieces = re.split(r"(`[^`]*`)", line)
        pieces[::2] = [re.sub(r"(?<!\\)([|*])", r"\\\1", piece) for piece in pieces[::2]]
        lines[i] = "".join(pieces)
    attributes.keep_whole(what, lines)


def with_attributes_apart(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """What napoleon has made of a docstring, with a field for each attribute."""
    lines[:] = attributes.apart(attributes.whole_again(lines))


def is_boilerplate(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Hide the fields of named tuples, which their class describes, what a layer calls, and what
    scikit-learn writes into its estimators."""
    about, module = str(getattr(obj, "__doc__", "")), str(getattr(obj, "__module__", ""))
    hidden = about.startswith("Alias for field number") or module.startswith("sklearn.")
    return True if hidden or name == "function" else None


write_ops_page()
ops_table.write()
names_table.write()
onnx_table.write()


def write_live_pages(app: Any, error: Exception | None) -> None:
    """pages/: what the documentation shows in frames."""
    if error is None and app.builder.format == "html":
        for room in (live_pages, live_kernels):
            room.make_all(Path(app.outdir) / "pages")


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", as_plain_text, priority=100)
    app.connect("autodoc-process-docstring", with_attributes_apart, priority=900)
    app.connect("autodoc-skip-member", is_boilerplate)
    app.connect("build-finished", write_live_pages)
