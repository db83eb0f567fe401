"""The picture of a graph as SVG, without any program or library."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from xml.sax.saxutils import escape

from tinygraph.base.page_text import clip, printable
from tinygraph.show.boxes import Box
from tinygraph.show.layout import Arrangement, Place, arrange, start_of_edge
from tinygraph.show.palette import FONT, INK, LINE, STYLES, Style

MARGIN = 16.0
HEIGHT, NUMBERS = 38.0, 14.0  # of a box, and of each line of numbers in it
ADVANCE = 7.3  # of a character at 12 px, in the widest of the usual monospaced fonts
LONGEST = 44  # characters of a title; the tooltip holds the rest


def to_svg(boxes: Sequence[Box]) -> str:
    """The whole document."""
    titles = [
        clip(("… " if box.cut else "") + f"{box.number}  {box.title}", LONGEST) for box in boxes
    ]
    widths = [
        ADVANCE * max(_columns(title), *[0.92 * _columns(t) for t in (box.detail, *box.numbers)])
        + 22
        for title, box in zip(titles, boxes, strict=True)
    ]
    layout = arrange([box.inputs for box in boxes], widths)
    height = HEIGHT + NUMBERS * max(len(box.numbers) for box in boxes)
    tops = _tops(layout, height)
    bottom = tops[-1] + height
    legend, legend_width = _legend(boxes, bottom + 26)
    width = max(layout.width, legend_width) + 2 * MARGIN
    shift = MARGIN + (width - 2 * MARGIN - layout.width) / 2
    for layer in layout.layers:
        for place in layer:
            place.x += shift
    page = bottom + 26 + 22 + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{page:.0f}" '
            f'viewBox="0 0 {width:.0f} {page:.0f}" font-family="{FONT}" font-size="12">',
            f"<title>Computational graph of {len(boxes)} nodes</title>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z" fill="{LINE}"/>'
            "</marker>"
            "</defs>",
            *_edges(boxes, layout, tops, height),
            *[
                _box(box, title, place, tops[place.layer], height)
                for box, title, place in zip(boxes, titles, layout.boxes, strict=True)
            ],
            *legend,
            "</svg>",
            "",
        ]
    )


def _tops(layout: Arrangement, height: float) -> list[float]:
    """The y of each layer.  Where edges run far sideways, the layers stand further apart."""
    tops = [MARGIN]
    for layer in layout.layers[:-1]:
        reach = max((abs(s.x - n.x) for s in layer for n in s.below), default=0.0)
        tops.append(tops[-1] + height + min(34 + 0.12 * reach, 110))
    return tops


def _edges(
    boxes: Sequence[Box], layout: Arrangement, tops: Sequence[float], height: float
) -> list[str]:
    """Every edge, and the trunks that long edges share."""
    lines = [f'<g fill="none" stroke="{LINE}" stroke-width="1.4">']
    for box, place, trunk in zip(boxes, layout.boxes, layout.trunks, strict=True):
        if trunk:
            path = _trunk(place, trunk, tops, height)
            lines.append(f'<path class="trunk" data-from="{box.number}" d="{path}"/>')
    for i, box in enumerate(boxes):
        place = layout.boxes[i]
        starts = [start_of_edge(layout.boxes, layout.trunks, s, i) for s in box.inputs]
        ports = _ports(place, starts)
        for source, start, port in zip(box.inputs, starts, ports, strict=True):
            curve = _curve(start.x, tops[start.layer] + height, port, tops[place.layer])
            far = "" if start.is_box else ' data-trunk=""'  # it begins where that ends
            lines.append(
                f'<path class="edge" data-from="{boxes[source].number}" data-to="{box.number}" '
                f'd="{curve}" marker-end="url(#arrow)"{far}/>'
            )
    return [*lines, "</g>"]


def _trunk(box: Place, trunk: Sequence[Place], tops: Sequence[float], height: float) -> str:
    """Down the side of each layer in between: straight beside the boxes, curved between layers."""
    pieces = []
    x, y = box.x, tops[box.layer] + height
    for point in trunk:
        top = tops[point.layer]
        pieces.append(_curve(x, y, point.x, top) + f" V{top + height:.1f}")
        x, y = point.x, top + height
    return " ".join(pieces)


def _ports(box: Place, starts: Sequence[Place]) -> list[float]:
    """Where each edge meets the top of a box: spread evenly, in the order that they come from."""
    step = min(16.0, (box.width - 16) / max(len(starts), 1))
    ports = [0.0] * len(starts)
    for k, j in enumerate(sorted(range(len(starts)), key=lambda j: starts[j].x)):
        ports[j] = box.x + (k - (len(starts) - 1) / 2) * step
    return ports


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    if abs(x1 - x0) < 0.5:
        return f"M{x0:.1f} {y0:.1f} L{x1:.1f} {y1:.1f}"
    middle = (y0 + y1) / 2
    return f"M{x0:.1f} {y0:.1f} C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"


def _box(box: Box, title: str, place: Place, top: float, height: float) -> str:
    tooltip = f"{box.number} {box.settings or f'{box.kind} {box.title}'} {box.detail}"
    lines = [(box.detail, ' font-size="11"')] + [(t, ' font-size="10.5"') for t in box.numbers]
    left = place.x - place.width / 2
    return (
        f'<g class="node {box.kind}" data-number="{box.number}"><title>{_text(tooltip)}</title>'
        + _outline(STYLES[box.kind], left, top, place.width, height)
        + _centred(title, place.x, top + 16, ' font-weight="bold"')
        + "".join(
            _centred(text, place.x, top + 30 + NUMBERS * k, looks)
            for k, (text, looks) in enumerate(lines)
        )
        + "</g>"
    )


def _legend(boxes: Sequence[Box], top: float) -> tuple[list[str], float]:
    """A small filled box for each kind that occurs, and their width together."""
    present = {box.kind for box in boxes}
    lines, x = ['<g class="legend" font-size="11">'], MARGIN
    for style in [style for kind, style in STYLES.items() if kind in present]:
        width = 7.0 * len(style.meaning) + 18
        lines.append(_outline(style, x, top, width, 22.0))
        lines.append(_centred(style.meaning, x + width / 2, top + 15))
        x += width + 8
    return [*lines, "</g>"], x - 8 - MARGIN


def _outline(style: Style, left: float, top: float, width: float, height: float) -> str:
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.0f}" '
        f'rx="{min(style.radius, height / 2):.0f}" fill="{style.fill}" stroke="{style.stroke}" '
        f'stroke-width="1.4"{dash}/>'
    )


def _centred(text: str, x: float, y: float, looks: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{INK}" xml:space="preserve"'
        f"{looks}>{_text(text)}</text>"
    )


def _columns(text: str) -> int:
    """How many columns a text takes in a monospaced font."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _text(text: str) -> str:
    """Text for XML."""
    return escape(printable(text))
