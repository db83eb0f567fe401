"""The mathematics of an op for a page: the formulas in its docstring, each known as part of forward
or of backward.

A file of tinygraph/ops states its formulas in indented lines, several of them side by side:

    y  = x @ w^T + b
    gx = gy @ w        gw = gy^T @ x        gb = sum of gy

What begins with `gx =`, `dw =` and the like belongs to backward, and what is made of an upstream
gradient (`q = gy * x`); `N C H W` and `P = OH*OW` to nothing, the rest to forward.  Four spaces and
more behind a formula begin a remark, unless that begins with "or".

A file for a family has a row for each op, whose name stands first; then the other rows are left
out.  A row may also begin with a word that says when it holds: `training`, a setting of the op that
is true, or a number that is not 0; `"tanh"`, the value of one.  An op of a user's has its formulas
in the docstring of its class, or of its module.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any

from tinygraph.engine.op import Op, registry
from tinygraph.plan.declared import declared_of

MOST_LINES = 16
# where a formula begins: a left-hand side, perhaps several, and = or <-
INDEX = r"\[(?:[^\[\]=]|\[[^\[\]=]*\])*\]"  # x[i], x[order[i]]
NAME = rf"[A-Za-z_]\w*(?:{INDEX})?(?:\.\w+)?'?"
START = re.compile(rf"(?:^|(?<=\s\s)|(?<=[,;:]\s)){NAME}(?:, {NAME})* *(?:\+?=|<-)\s")
BACKWARD = re.compile(r"(?:g|d|dL?_?d?)g?[a-z](?:_?\w)?'?|g'|grad\w*")
UPSTREAM = re.compile(r"\b(?:g(?:y|z|o|r|loss|rad(?:_\w+)?|[a-z]+')|upstream)(?![\w'])")
REMARK = re.compile(r"(?<=\S)\s{4,}(?!or\b|\+?=|<-)(?=\S)")
LABEL = re.compile(r'\s*"?([a-z_][\w -]*?)"?\s{2,}')
LEGEND = re.compile(r"[A-Z][A-Z0-9]*\b")

Piece = tuple[str, str]  # text, and "forward", "backward" or ""


def formulas(op: Op | type[Op]) -> dict[str, Any]:
    """`title`, and `lines`, each a list of pieces [text, part]; of an op with the settings it has.

    >>> from tinygraph.ops.products.linear import Linear
    >>> formulas(Linear)["lines"][-1][0]
    ('gx = gy @ w', 'backward')
    """
    kind = op if isinstance(op, type) else type(op)
    doc = _docstring(kind)
    title = doc.partition("\n")[0].strip()
    blocks = _blocks(doc)
    rows = [row for block in blocks for row in _rows_of(block, kind)]
    if rows:
        return {"title": title, "lines": _pieces(rows)}
    idle = set() if isinstance(op, type) else _idle(blocks, op)
    stated = [(block, _pieces(block, idle)) for block in blocks]
    useful = [
        pieces
        for k, (_, pieces) in enumerate(stated)
        if k == 0 or any(p for row in pieces for _, p in row)
    ]
    return {"title": title, "lines": [row for pieces in useful for row in pieces][:MOST_LINES]}


def rules(thing: type) -> dict[str, Any]:
    """The formulas of an optimiser: the first paragraph of its module's docstring that has some.

    >>> from tinygraph.optim import SGD
    >>> rules(SGD)["lines"][-1]
    [('value = value - lr * d', 'forward')]
    """
    paragraphs = _dedented(getattr(inspect.getmodule(thing), "__doc__", None)).split("\n\n")
    title = paragraphs[0].partition("\n")[0].strip()
    for paragraph in paragraphs[1:]:
        lines = inspect.cleandoc(paragraph).splitlines()
        if any(START.match(line) for line in lines):
            pieces = [_without_remark(line, "forward") for line in lines[:MOST_LINES]]
            return {"title": title, "lines": pieces}
    return {"title": title, "lines": []}


def _docstring(op: type[Op]) -> str:
    own = _dedented(vars(op).get("__doc__"))
    if any(START.search(line) for line in own.splitlines()):
        return own
    whole = _dedented(getattr(inspect.getmodule(op), "__doc__", None))
    of_file = declared_of(op, "__mathematics__") == "of the file"
    return whole if of_file or not own else own


def _dedented(doc: str | None) -> str:
    return inspect.cleandoc(doc or "")


def _blocks(doc: str) -> list[list[str]]:
    """The indented lines, those that follow one another together; without any, the formulas."""
    blocks: list[list[str]] = [[]]
    lines = doc.splitlines()
    if not any(line.startswith("    ") for line in lines):
        return [[line for line in lines if START.match(line)]]
    for line in lines:
        if line.startswith("    "):
            blocks[-1].append(line[4:].rstrip())
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _rows_of(block: list[str], op: type[Op]) -> list[str]:
    """Of a family's block the row of one op, with the lines that go on with it; else nothing."""
    names = {x.name for x in registry.values() if inspect.getmodule(x) is inspect.getmodule(op)}
    heads = [line.split(" ", 1)[0].rstrip(":") for line in block]
    if op.name not in heads or sum(head in names for head in heads) < 2:
        return []
    at = heads.index(op.name)
    if not START.search(block[at]):
        return []
    rows = [" " * len(op.name) + block[at][len(op.name) :]]
    for line in block[at + 1 :]:
        if not line.startswith(" "):
            break
        rows.append(line)
    left = min(len(row) - len(row.lstrip()) for row in rows)
    return [row[left:] for row in rows]


def _label(row: str) -> str:
    """The word before the first formula of a row."""
    first = START.search(row)
    found = LABEL.fullmatch(row[: first.start()]) if first else None
    return found[1] if found else ""


def _idle(blocks: list[list[str]], op: Op) -> set[str]:
    """The labels of rows that do not hold for an op with these settings."""
    settings = {
        name: bool(value) if isinstance(value, float) else value
        for name, value in vars(op).items()
        if isinstance(value, (bool, str, float))
    }
    named = {value for value in settings.values() if isinstance(value, str)}
    named.add(re.split(r"(?<=[a-z])(?=[A-Z])", type(op).__name__)[0].lower())
    idle: set[str] = set()
    for block in blocks:
        labels = {_label(row) for row in block} - {""}
        held = {x for x in labels if settings.get(x) is True or x in named}
        off = {x for x in labels if settings.get(x) is False}
        idle |= labels - held if held else off
    return idle


def _pieces(rows: list[str], idle: Collection[str] = ()) -> list[list[Piece]]:
    """Each row cut where formulas begin; what begins with none belongs to the one above it."""
    found: list[list[Piece]] = []
    above: list[tuple[int, str]] = []  # columns of the last formulas, and their parts
    for row in rows:
        begun = list(START.finditer(row))
        ends = [match.start() for match in begun[1:]] + [len(row)]
        starts = [
            (match.start(), _part(match.group(), REMARK.split(row[match.end() : end])[0]))
            for match, end in zip(begun, ends, strict=False)
        ]
        if _label(row) in idle:
            starts = [(at, "") for at, _ in starts]
        if starts:
            above = starts
        elif row.startswith(" "):  # goes on with what stands over it
            columns = [match.start() for match in re.finditer(r"(?:^|(?<=\s\s\s))\S", row)]
            columns = columns or [len(row) - len(row.lstrip())]
            over = [[part for at, part in above if at <= column + 1] for column in columns]
            starts = [
                (at, parts[-1] if parts else "") for at, parts in zip(columns, over, strict=True)
            ]
        cuts = [0, *[column for column, _ in starts], len(row)]
        parts = ["", *[part for _, part in starts]]
        found.append(
            [
                piece
                for a, b, p in zip(cuts, cuts[1:], parts, strict=False)
                if a < b
                for piece in _without_remark(row[a:b], p)
            ]
        )
    return found


def _without_remark(text: str, part: str) -> list[Piece]:
    """A formula, and behind it the space or remark that belongs to no walk."""
    remark = REMARK.search(text)
    end = remark.start() if remark else len(text.rstrip())
    return [(piece, p) for piece, p in ((text[:end], part), (text[end:], "")) if piece]


def _part(left: str, right: str) -> str:
    """Which walk a formula belongs to."""
    name = re.split(r"\+?=|<-|\[|,|\.", left)[0].strip()
    if LEGEND.fullmatch(name):
        return ""
    return "backward" if BACKWARD.fullmatch(name) or UPSTREAM.search(right) else "forward"
