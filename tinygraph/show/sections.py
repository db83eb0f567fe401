"""The sections of a report: each takes plain data and returns HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinygraph.base import GraphError
from tinygraph.base.page import escape, folded, scroll, table
from tinygraph.base.page_text import clip
from tinygraph.engine import Array
from tinygraph.show.boxes import Box, collect
from tinygraph.show.charts import bars, lines, swatch
from tinygraph.show.curves import is_number, metric_panels, words
from tinygraph.show.filters import filter_pixels
from tinygraph.show.folding import fitted
from tinygraph.show.graph_picture import as_outputs
from tinygraph.show.histograms import distributions
from tinygraph.show.labels import as_array, class_accuracies, confusions, in_turn, shares
from tinygraph.show.png import diverging, png_uri
from tinygraph.show.samples import as_bytes, checked_images
from tinygraph.show.svg import to_svg

MAX_IMAGES, MAX_WRONG = 48, 36  # shown; so that some right ones can be seen beside the wrong ones
LARGEST_IMAGE = 128  # pixels on a side; of larger ones every k-th pixel is kept
MAX_NUMBERS = 30  # classes, up to which the confusion matrix is a table
MAX_CONFUSIONS = 20  # most frequent ones, listed where it is a picture
MAX_LAYERS = 6
UNFOLDED = 12  # histograms


def curves_html(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """A chart for each metric, or nothing where no column holds numbers."""
    figures = []
    for metric, columns in metric_panels(rows).items():
        series = []
        for column in columns:
            points = [
                (_finite(row.get("epoch"), float(k)), _finite(row.get(column)))
                for k, row in enumerate(rows, start=1)
            ]
            if any(y is not None for _, y in points):
                series.append((words(column), points))
        if series:
            legend = "".join(
                f"<span>{swatch(k)}{escape(name)}</span>" for k, (name, _) in enumerate(series)
            )
            figures.append(
                f"<figure>{lines(words(metric), series)}\n"
                f'<figcaption class="legend">{legend}</figcaption></figure>'
            )
    return f'<div class="charts">\n{chr(10).join(figures)}</div>' if figures else None


def samples_html(images: Array, truth: Array, predicted: Array, names: Sequence[str]) -> str:
    """Images (N, H, W, 1 or 3) with their classes: the wrong ones first, of all classes."""
    wrong = truth != predicted
    first = in_turn(truth, wrong, MAX_WRONG)
    others = in_turn(truth, ~wrong, MAX_IMAGES - len(first))
    chosen = np.concatenate([first, others])
    step = -(-max(images.shape[1:3]) // LARGEST_IMAGE)
    drawn = as_bytes(images, chosen)[:, ::step, ::step]
    smooth = ' class="smooth"' if max(drawn.shape[1:3]) > 64 else ""
    parts = []
    for k, image in zip(chosen, drawn, strict=True):
        was, taken = escape(names[truth[k]]), escape(names[predicted[k]])
        caption = f"✗ predicted <b>{taken}</b>, is <b>{was}</b>" if wrong[k] else was
        parts.append(
            f'<figure{" class=wrong" if wrong[k] else ""}><img src="{png_uri(image)}"{smooth} '
            f'alt="sample {k}, class {was}"><figcaption>{caption}</figcaption></figure>'
        )
    total = int(wrong.sum())
    text = f"{total} of {truth.size} samples were taken for another class."
    if len(chosen) < truth.size:
        text += f" Shown: {len(first)} of these, and {len(others)} that were recognized."
    return f'<p>{text}</p>\n<div class="images">\n{chr(10).join(parts)}\n</div>'


def comparison_html(images: Mapping[str, Any]) -> str:
    """Images side by side, as wide as the page has room, with their captions."""
    figures = []
    for caption, values in images.items():
        image = checked_images("show.report", as_array(values)[None], 1)
        uri = png_uri(as_bytes(image, np.arange(1))[0])
        text = escape(caption)
        figures.append(
            f'<figure><img src="{uri}" alt="{text}"><figcaption>{text}</figcaption></figure>'
        )
    return f'<div class="compared">\n{chr(10).join(figures)}</div>'


def texts_html(texts: Mapping[str, Any]) -> str:
    """Texts as they stand, with their captions; of those in parts, the redder the larger."""
    figures = []
    for caption, text in texts.items():
        parts = [(text, 0.0)] if isinstance(text, str) else text
        body = "".join(_text_part(str(part), float(number)) for part, number in parts)
        words = escape(caption)
        figures.append(f'<figure><figcaption>{words}</figcaption><pre class="text">{body}</pre>')
    return "\n".join(f"{figure}</figure>" for figure in figures)


def _text_part(part: str, number: float) -> str:
    strength = min(max(number, 0.0), 1.0) if math.isfinite(number) else 1.0
    last = "\n" if part.endswith("\n") else ""  # which `escape` takes away
    if not strength:
        return escape(part) + last
    return f'<span style="--a:{strength:.2f}">{escape(part) or " "}</span>{last}'


def confusion_html(truth: Array, predicted: Array, names: Sequence[str]) -> str:
    """The confusion matrix: as a table, or with many classes as a picture and a list."""
    counts = confusions(truth, predicted, len(names))
    right = int(np.trace(counts))
    text = f"{right} of {truth.size} samples were recognized: accuracy {right / truth.size:.4f}."
    body = _matrix_table(counts, names) if len(names) <= MAX_NUMBERS else _heat(counts, names)
    return f"<p>{text}</p>\n{body}"


def _matrix_table(counts: Array, names: Sequence[str]) -> str:
    share = shares(counts)
    accuracies = class_accuracies(counts)
    upright = ' class="upright"' if max(map(len, names)) > 4 else ""
    heads = "".join(
        f'<th scope="col" title="{escape(n)}"><span{upright}>{escape(clip(n, 20))}</span></th>'
        for n in names
    )
    rows = []
    for t, name in enumerate(names):
        cells = []
        for p, count in enumerate(counts[t]):
            kind = "zero" if not count else "hit" if t == p else "miss"
            strength = share[t, p] if t == p else math.sqrt(share[t, p])  # few mistakes show too
            style = f' style="--a:{strength:.2f}"' if count else ""
            cells.append(f'<td class="{kind}"{style}>{count}</td>')
        cells.append(f'<td class="share">{_percent(accuracies[t])}</td>')
        label = f'<th scope="row" title="{escape(name)}">{escape(clip(name, 16))}</th>'
        rows.append(f"<tr>{label}{''.join(cells)}</tr>")
    last = '<th scope="col"><span class="upright">accuracy</span></th>'
    caption = "A row is a true class, a column a predicted one; rows end in their accuracy."
    matrix = (
        '<table class="matrix">\n'
        f'<thead><tr><td class="share"></td>{heads}{last}</tr></thead>\n'
        f"<tbody>\n{chr(10).join(rows)}\n</tbody></table>"
    )
    return f'{scroll(matrix)}\n<p class="soft">{caption}</p>'


def _heat(counts: Array, names: Sequence[str]) -> str:
    """A pixel for each cell, the most frequent confusions, and the accuracy of each class."""
    share = shares(counts)
    signed = np.where(np.eye(len(names), dtype=bool), -share, np.sqrt(share))
    picture = (
        f'<figure><img class="heat" src="{png_uri(diverging(signed, 1.0))}" '
        f'alt="Confusion matrix of {len(names)} classes"><figcaption>From top to bottom the true '
        "classes, from left to right the predicted ones; blue is right, red is wrong."
        "</figcaption></figure>"
    )
    mistakes = counts * ~np.eye(len(names), dtype=bool)
    order = np.argsort(-mistakes, axis=None, kind="stable")[:MAX_CONFUSIONS]
    confused = [
        (names[t], names[p], counts[t, p])
        for t, p in (divmod(int(k), len(names)) for k in order)
        if mistakes[t, p]
    ]
    found = scroll(table(confused, ("true class", "predicted", "count"), names=2))
    accuracies = zip(names, map(_percent, class_accuracies(counts)), strict=True)
    return "\n".join(
        [
            picture,
            folded("The most frequent confusions", found, bool(confused)),
            folded("The accuracy of each class", table(accuracies, names=1)),
        ]
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def filters_html(state: Mapping[str, Any]) -> str | None:
    """The filters of the first convolutions, or nothing where there are none."""
    arrays = {name: as_array(values) for name, values in state.items()}
    found = {
        n: a
        for n, a in arrays.items()
        if a.ndim == 4
        and a.dtype.kind == "f"
        and a.size
        and a.shape[2] * a.shape[3] > 1
        and max(a.shape[2:]) <= LARGEST_IMAGE
    }
    figures = [_layer_filters(str(name), a) for name, a in list(found.items())[:MAX_LAYERS]]
    if not figures:
        return None
    left = len(found) - len(figures)
    note = f'<p class="soft">{left} later layers are not shown.</p>' if left else ""
    return f'<div class="filters">\n{chr(10).join(figures)}</div>{note}'


def _layer_filters(name: str, w: Array) -> str:
    number, channels, height, width = w.shape
    pixels, part, largest = filter_pixels(w)
    zoom = max(1, round((32 if channels <= 3 else 20) / (width + 1)))
    shown = "" if part == w.shape[:2] else f"; shown are {part[0]} and {part[1]}"
    return (
        f'<figure><img width="{pixels.shape[1] * zoom}" height="{pixels.shape[0] * zoom}" '
        f'src="{png_uri(pixels)}" alt="filters of {escape(name)}">'
        f'<div class="scale">{-largest:.3g}<i></i>{largest:.3g}</div>'
        f"<figcaption><b>{escape(name)}</b> {number} filter{'s' * (number != 1)} of "
        f"{height} × {width}, "
        f"{channels} input channel{'s' * (channels != 1)}{shown}</figcaption></figure>"
    )


def weights_html(state: Mapping[str, Any]) -> str | None:
    """A histogram for each array of floats."""
    if not any(as_array(values).dtype.kind == "f" for values in state.values()):
        return None
    figures = [
        f"<figure>{bars(weights)}\n<figcaption><b>{escape(weights.name)}</b> "
        f"{escape(weights.caption)}</figcaption></figure>"
        for weights in distributions("show.report", state)
    ]
    shown, more = figures[:UNFOLDED], figures[UNFOLDED:]
    body = f'<div class="charts small">\n{chr(10).join(shown)}</div>'
    if more:
        body += folded(f"{len(more)} more", f'<div class="charts small">{chr(10).join(more)}</div>')
    return body


def graph_html(outputs: Any) -> str:
    """The picture of the graph; of a large one folded by module, with all of it to unfold.

    In place of one that is too large, a sentence that says so.
    """
    tensors = as_outputs("show.report", outputs)
    try:
        boxes = collect(tensors)
        folded_boxes = fitted(boxes)
        picture = _graph_picture(folded_boxes)
        if len(folded_boxes) < len(boxes):
            picture += folded(f"All {len(boxes)} nodes", _graph_picture(boxes))
    except GraphError as error:
        return f"<p>{escape(error)}</p>"
    return picture


def _graph_picture(boxes: Sequence[Box]) -> str:
    picture = to_svg(boxes)
    width = float(picture.split('width="', 1)[1].split('"', 1)[0])
    # as wide as drawn where there is room, down to a size that can still be read, then it scrolls
    least = min(width, max(320.0, 0.55 * width))
    style = f"width:100%;max-width:{width:.0f}px;min-width:{least:.0f}px"
    picture = picture.replace("<svg ", f'<svg style="{style}" ', 1)
    return f'<div class="graph" tabindex="0">{picture}</div>'


def _finite(value: Any, otherwise: Any = None) -> Any:
    """A number of a log as float, and something else in place of what is none."""
    return float(value) if is_number(value) and math.isfinite(value) else otherwise
