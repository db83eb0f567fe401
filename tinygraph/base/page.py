"""The parts of a page in HTML: escaped text, sections, tables, and the document around them.

The page asks for nothing over the network and runs nothing: its policy forbids both, for the case
that something was not escaped after all.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tinygraph.base.json_text import to_json
from tinygraph.base.page_text import printable

STYLE = Path(__file__).with_name("page.css")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Section(NamedTuple):
    """A part of the page with a heading; `body` is HTML."""

    anchor: str
    title: str
    body: str


def escape(text: object) -> str:
    """Text for HTML, between tags and in quoted attributes.

    >>> escape("<b>'&'")
    '&lt;b&gt;&#x27;&amp;&#x27;'
    """
    lines = str(text).splitlines() or [""]
    return html.escape("\n".join(printable(line) for line in lines), quote=True)


def document(title: str, head: str, sections: Sequence[Section]) -> str:
    """The whole page."""
    links = "".join(f'<a href="#{s.anchor}">{escape(s.title)}</a>' for s in sections)
    parts = [
        f'<section id="{s.anchor}"><h2>{escape(s.title)}</h2>\n{s.body}\n</section>'
        for s in sections
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{STYLE.read_text(encoding='utf-8')}</style></head><body>",
            f"<header><h1>{escape(title)}</h1>\n{head}\n<nav>{links}</nav></header>",
            "<main>",
            *parts,
            "</main></body></html>",
            "",
        ]
    )


def value_text(value: Any) -> str:
    """A value for people: floats with six digits, lists as JSON.

    >>> value_text(0.9638888888), value_text(None), value_text([1, "a"]), value_text("plain")
    ('0.963889', 'none', '[1, "a"]', 'plain')
    """
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return to_json("report", value, ensure_ascii=False)
    return str(value)


def flatten(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Mappings within mappings as one list, their names joined.

    >>> flatten({"a": 1, "test": {"loss": 2}})
    [('a', 1), ('test loss', 2)]
    """
    flat: list[tuple[str, Any]] = []
    for name, value in facts.items():
        full = f"{prefix}{name}".replace("_", " ") if prefix else str(name).replace("_", " ")
        if isinstance(value, Mapping):
            flat += flatten(value, f"{full} ")
        else:
            flat.append((full, value))
    return flat


def table(rows: Iterable[Sequence[object]], heads: Sequence[str] = (), names: int = 0) -> str:
    """Rows of text; the first cells of a row, so many, are its names."""
    head = "".join([f'<th scope="col">{escape(text)}</th>' for text in heads])
    body = "".join(
        [
            "<tr>"
            + "".join([f'<th scope="row">{escape(text)}</th>' for text in row[:names]])
            + "".join([f"<td>{escape(text)}</td>" for text in row[names:]])
            + "</tr>\n"
            for row in rows
        ]
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def facts_table(facts: Mapping[str, Any]) -> str:
    """Names and values below one another."""
    rows = [(name, value_text(value)) for name, value in flatten(facts)]
    return f'<div class="facts">{table(rows, names=1)}</div>'


def log_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row for each epoch, a column for each name that occurs."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = ([_cell(row.get(column)) for column in columns] for row in rows)
    return scroll(table(cells, [str(column).replace("_", " ") for column in columns]))


def scroll(body: str) -> str:
    """Something that may be wider than the page."""
    return f'<div class="scroll" tabindex="0">{body}</div>'


def folded(summary: str, body: str, is_open: bool = False) -> str:
    """Something to unfold."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(summary)}</summary>\n{body}</details>"


def _cell(value: Any) -> str:
    return "–" if value is None else value_text(value)
