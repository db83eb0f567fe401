"""The confusion matrix: what each class was taken for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.base import AnyPath, writable
from tinygraph.base.page_text import for_matplotlib
from tinygraph.engine import Array
from tinygraph.ops.common import documented
from tinygraph.show.figures import CLASSES, PICTURE, new_figure, save
from tinygraph.show.labels import checked_pair, class_accuracies, confusions, shares

SMALLEST_NUMBER = 4.5  # points; a cell whose number would be smaller has none
MAX_TICKS = 120


@documented(CLASSES)
@documented(PICTURE)
def confusion_matrix(
    labels: Any,
    predictions: Any,
    classes: Sequence[Any] | None = None,
    path: AnyPath = "confusion_matrix.png",
) -> Path:
    """Draw how often each class was taken for each class: a row for the truth, a column for what
    was predicted.

    The colour is the share of the row, on a scale of square roots; the number in a cell is the
    count, left out where cells become too small for it.  On the right stands the accuracy of each
    class: the share of its samples that were recognized.

    Raises
    ------
    ArgumentError
        ... A negative class, one without a name, more than 1000 of them.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/confusion.svg"
    ...     tg.show.confusion_matrix([0, 1, 1], [0, 1, 0], ["cat", "dog"], path).name
    'confusion.svg'
    """
    target = writable("show.confusion_matrix", path, (".svg", ".png", ".pdf"))
    truth, predicted, names = checked_pair("show.confusion_matrix", labels, predictions, classes)
    number = len(names)
    counts = confusions(truth, predicted, number)
    cell = 0.5 if number <= 15 else 0.36 if number <= 30 else max(0.15, 10 / number)
    cell = min(cell, 24 / number)  # a picture of two feet is large enough
    cell = max(cell, 2.4 / number)  # and the room of the colour bar is the least
    names = [for_matplotlib(name) for name in names]
    room = 0.09 * max(map(len, names))  # for a name
    figure = new_figure(cell * number + room + 2.4, cell * number + room + 1.2)
    axes = figure.subplots()
    image = _draw_shares(axes, shares(counts))
    _write_counts(axes, counts, cell)
    _write_names(axes, names, counts, cell)
    right = int(np.trace(counts))
    axes.set_title(f"{right} of {truth.size} right: accuracy {right / truth.size:.4f}", fontsize=10)
    figure.colorbar(
        image, ax=axes, label="share of the row", shrink=min(1.0, 3 / (cell * number)), pad=0.02
    )
    return save(figure, target)


def _draw_shares(axes: Any, share: Array) -> Any:
    """Each cell in the colour of its share; by its square root, so that few mistakes show too."""
    from matplotlib.colors import PowerNorm

    return axes.imshow(share, cmap="Blues", norm=PowerNorm(0.5, 0, 1), interpolation="nearest")


def _write_counts(axes: Any, counts: Array, cell: float) -> None:
    """A number in each cell that is not 0, as large as the longest of them allows."""
    digits = len(str(counts.max()))
    size = min(10.0, cell * 72 * 0.85 / (0.62 * max(digits, 2)))
    if size < SMALLEST_NUMBER:
        return
    share = shares(counts)
    for (row, column), count in np.ndenumerate(counts):
        if count:
            ink = "white" if share[row, column] > 0.3 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=ink, fontsize=size)


def _write_names(axes: Any, names: list[str], counts: Array, cell: float) -> None:
    """Names below and on the left, accuracies on the right; every k-th where there are many."""
    step = -(-len(names) // MAX_TICKS)
    places = list(range(0, len(names), step))
    size = min(10.0, max(4.0, cell * step * 72 * 0.62))
    shown = [names[k] for k in places]
    upright = max(len(name) for name in shown) * size * 0.6 < cell * step * 72
    axes.set_xticks(places, shown, fontsize=size, rotation=0 if upright else 90)
    axes.set_yticks(places, shown, fontsize=size)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    right = axes.secondary_yaxis("right")
    accuracies = class_accuracies(counts)
    right.set_yticks(
        places,
        ["–" if accuracies[k] is None else f"{accuracies[k]:.1%}" for k in places],
        fontsize=size,
    )
    right.set_ylabel("accuracy of the class")
    right.tick_params(length=0)
