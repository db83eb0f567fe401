"""How the kinds of node are told apart.

Every text stands in a filled box, and lines have a middle grey, so that a picture can be read on a
light and on a dark page.  Outlines differ as well as colours, for readers who see no colours.
"""

from __future__ import annotations

from typing import NamedTuple

INK = "#1b1f24"
LINE = "#808890"  # contrast of about 3.6 to white and 5 to a dark page
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


class Style(NamedTuple):
    """A kind of node: the colours of its box, its corner radius, and the dashes of its outline."""

    fill: str
    stroke: str
    radius: int
    dash: str
    meaning: str


STYLES = {
    "data": Style("#d5f2dc", "#2c8a4b", 19, "", "data"),
    "constant": Style("#e6e8eb", "#69727d", 19, "4 3", "constant"),
    "parameter": Style("#ffe5c2", "#b96a10", 0, "", "parameter"),
    "state": Style("#eadcfb", "#7a4cc2", 0, "4 3", "running statistics"),
    "op": Style("#d9e8ff", "#2f66c4", 8, "", "op"),
    "module": Style("#c3ece9", "#14706a", 4, "8 3", "module, folded"),
}
