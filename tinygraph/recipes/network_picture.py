"""The picture of a small fully connected network: a circle for each neuron, a line for each weight.

Lines are blue below zero and red above, wider for larger weights, with the number beside them; the
bias stands in its neuron.  `beside` puts two SVG pictures next to each other in one file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np

from tinygraph.base import ArgumentError, ShapeError
from tinygraph.engine import Array

RADIUS, ACROSS, DOWN, MARGIN = 26.0, 210.0, 104.0, 40.0
INK, POSITIVE, NEGATIVE = "#1b1f24", "#c4512f", "#2f66c4"
FILLS = ("#d5f2dc", "#d9e8ff", "#ffe5c2")  # inputs, hidden neurons, outputs
HEADER = re.compile(r"<svg\b[^>]*?\bwidth=\"([\d.]+)\"[^>]*?\bheight=\"([\d.]+)\"")


def network_svg(layers: Sequence[tuple[Array, Array]], inputs: Sequence[str]) -> str:
    """The picture of a network as an SVG document.

    A layer is its weights (O, I) and biases (O,), from the inputs on, which have names.

    Raises
    ------
    ShapeError
        Layers that do not fit together.

    Examples
    --------
    >>> svg = network_svg([(np.array([[1.0, -1.0]]), np.array([0.5]))], ["x1", "x2"])
    >>> svg.count("<circle"), svg.count("<line")
    (3, 2)
    """
    sizes = [len(inputs)]
    for number, (weight, bias) in enumerate(layers):
        if weight.ndim != 2 or weight.shape[1] != sizes[-1] or bias.shape != weight.shape[:1]:
            expected = f"weight (O, {sizes[-1]}), bias (O,)"
            got = f"{weight.shape} and {bias.shape}"
            raise ShapeError("network_svg", f"layer {number}", expected, got)
        sizes.append(weight.shape[0])
    height = DOWN * max(sizes) + MARGIN
    places = [
        [
            (MARGIN + RADIUS + ACROSS * k, height / 2 + DOWN * (j - (size - 1) / 2))
            for j in range(size)
        ]
        for k, size in enumerate(sizes)
    ]
    most = max((float(np.abs(weight).max(initial=0)) for weight, _ in layers), default=0) or 1.0
    drawn = [
        f"<title>Network {'-'.join(map(str, sizes))}: weights, and biases in the neurons</title>"
    ]
    for k, (weight, _) in enumerate(layers):
        drawn += _lines(weight, places[k], places[k + 1], most)
    for k, layer in enumerate(places):
        texts = list(inputs) if k == 0 else [f"{b:+.2f}" for b in layers[k - 1][1]]
        fill = FILLS[0 if k == 0 else 2 if k == len(layers) else 1]
        drawn += [_neuron(place, text, fill) for place, text in zip(layer, texts, strict=True)]
    font = ' font-family="sans-serif" font-size="13"'
    return _document(ACROSS * len(layers) + 2 * (MARGIN + RADIUS), height, drawn, font)


def _document(width: float, height: float, parts: Sequence[str], more: str = "") -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size}{more}>', *parts, "</svg>", ""]
    )


def _lines(
    weight: Array,
    left: Sequence[tuple[float, float]],
    right: Sequence[tuple[float, float]],
    most: float,
) -> list[str]:
    """A line for each weight (O, I), its number nearer to the left where lines cross less."""
    drawn, numbers = [], []
    for (o, i), w in np.ndenumerate(weight):
        (x0, y0), (x1, y1) = left[i], right[o]
        colour = POSITIVE if w > 0 else NEGATIVE
        drawn.append(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" '
            f'stroke-width="{0.8 + 4.2 * abs(w) / most:.2f}"/>'
        )
        x, y = x0 + 0.33 * (x1 - x0), y0 + 0.33 * (y1 - y0)
        numbers.append(
            f'<rect x="{x - 21:.1f}" y="{y - 9:.1f}" width="42" height="18" rx="4" fill="white" '
            f'stroke="{colour}"/>{_label(x, y, f"{w:+.2f}")}'
        )
    return drawn + numbers


def _label(x: float, y: float, text: str) -> str:
    at = f'x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle"'
    return f'<text {at} fill="{INK}">{escape(text)}</text>'


def _neuron(place: tuple[float, float], text: str, fill: str) -> str:
    x, y = place
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:.0f}" fill="{fill}" stroke="{INK}" '
        f'stroke-width="1.4"/>{_label(x, y, text)}'
    )


def beside(left: str, right: str, gap: float = 24.0) -> str:
    """Two SVG documents side by side in a new one, on white.

    Raises
    ------
    ArgumentError
        A document without a width and a height in pixels.

    Examples
    --------
    >>> picture = network_svg([], ["x"])
    >>> beside(picture, picture).count("<svg")
    3
    """
    sizes = [_size(picture) for picture in (left, right)]
    width, height = sum(w for w, _ in sizes) + gap, max(h for _, h in sizes)
    parts, x = ['<rect width="100%" height="100%" fill="white"/>'], 0.0
    for picture, (w, h) in zip((left, right), sizes, strict=True):
        inner = picture[picture.index("<svg") :]
        place = f'<svg x="{x:.1f}" y="{(height - h) / 2:.1f}"'
        parts.append(inner.replace("<svg", place, 1).rstrip())
        x += w + gap
    return _document(width, height, parts)


def _size(picture: str) -> tuple[float, float]:
    match = HEADER.search(picture)
    if match is None:
        expected = "an SVG document with width and height in pixels"
        raise ArgumentError("beside", "picture", expected, repr(picture[:60]))
    return float(match[1]), float(match[2])
