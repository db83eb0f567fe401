"""The texts of the exercises as slides, a heading a slide; `make docs` builds them."""

from __future__ import annotations

from pathlib import Path

project = "tinygraph: the course"
extensions = ["myst_parser", "sphinx_revealjs"]
exclude_patterns = ["index.md", "teaching.md", "grading.md", "writing.md", "example"]  # to be read
root_doc = min(page.stem for page in (Path(__file__).parents[1] / "course").glob("[0-9]*.md"))
smartquotes = False
suppress_warnings = ["toc.not_included"]

revealjs_style_theme = "white"
revealjs_static_path = ["static"]
revealjs_css_files = ["slides.css"]
revealjs_script_conf = {
    "width": 1440,
    "height": 900,
    "hash": True,  # a slide has an address
    "slideNumber": True,
    "center": False,
    "transition": "none",
}
