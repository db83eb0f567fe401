"""The picture of a graph as text in the DOT language, and drawn by Graphviz."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tinygraph.base import ArgumentError
from tinygraph.show.boxes import Box
from tinygraph.show.palette import INK, LINE, STYLES


def to_dot(boxes: Sequence[Box]) -> str:
    """DOT source: one statement for each box and each edge."""
    lines = [
        "digraph tinygraph {",
        '  graph [bgcolor="transparent" nodesep="0.3" ranksep="0.35"];',
        f'  node [shape="box" fontname="DejaVu Sans Mono" fontsize="11" fontcolor="{INK}"];',
        f'  edge [color="{LINE}" arrowsize="0.7"];',
    ]
    for i, box in enumerate(boxes):
        style = STYLES[box.kind]
        looks = ["filled"] + ["rounded"] * bool(style.radius) + ["dashed"] * bool(style.dash)
        cut = "... " if box.cut else ""
        lines_of_box = (f"{cut}{box.number}  {box.title}", box.detail, *box.numbers)
        label = "\\n".join(map(_escape, lines_of_box))
        lines.append(
            f'  n{i} [label="{label}" tooltip="{_escape(box.settings or box.title)}" '
            f'style="{",".join(looks)}" fillcolor="{style.fill}" color="{style.stroke}"];'
        )
    lines.extend(f"  n{source} -> n{i};" for i, box in enumerate(boxes) for source in box.inputs)
    return "\n".join([*lines, "}", ""])


def render(boxes: Sequence[Box], suffix: str) -> bytes:
    """Have Graphviz draw the boxes, as `.png` or `.pdf`."""
    command = ["dot", f"-T{suffix[1:]}"]
    way_out = "install Graphviz, or draw an .svg, which needs no program"
    try:
        made = subprocess.run(command, input=to_dot(boxes).encode(), capture_output=True)
    except FileNotFoundError:
        raise ArgumentError(
            "show.graph", "path", f"the program 'dot' to draw a {suffix}", "none", way_out
        ) from None
    if made.returncode:
        got = made.stderr.decode(errors="replace").strip()
        raise ArgumentError("show.graph", "path", f"a {suffix} from Graphviz", got, way_out)
    return made.stdout


def _escape(text: str) -> str:
    """Text for a quoted DOT string: no escapes, entities or control characters of its own."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
