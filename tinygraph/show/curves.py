"""Curves of a training: loss and accuracy over the epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from tinygraph.base import AnyPath, ArgumentError, writable
from tinygraph.base.page_text import for_matplotlib
from tinygraph.ops.common import documented
from tinygraph.show.figures import PICTURE, drawable, new_figure, save

# (colour, dashes, marker): told apart in grey print too
LOOKS = [
    ("#2f66c4", "-", "o"),
    ("#c4512f", "--", "s"),
    ("#2c8a4b", "-.", "^"),
    ("#7a4cc2", ":", "D"),
]


@documented(PICTURE)
def curves(rows: Sequence[Mapping[str, Any]], path: AnyPath = "curves.svg") -> Path:
    """Draw what a training recorded: a panel for losses and one for every other metric.

    Parameters
    ----------
    rows : sequence of mappings
        One for each epoch, such as `{"epoch": 1, "loss": 0.9, "validation_loss": 1.0, "accuracy":
        0.7}`. `epoch` is the horizontal axis, by default 1, 2, ... A column `validation_X` goes
        into the panel of X, as does any column that ends in `_X` where X is one. A value may be
        absent or None in some rows. Columns that are not numbers are left out, as are times: names
        that contain "seconds" or "time".

    Raises
    ------
    ArgumentError
        ... There is nothing to draw.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> rows = [{"loss": 2.3, "accuracy": 0.1}, {"loss": 0.4, "accuracy": 0.9}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.curves(rows, f"{folder}/curves.svg").name
    'curves.svg'
    """
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        expected, way_out = "a row for each epoch", "draw what fit returns: rows = trainer.fit(...)"
        raise ArgumentError("show.curves", "rows", expected, type(rows).__name__, way_out)
    target = writable("show.curves", path, (".svg", ".png", ".pdf"))
    panels = metric_panels(rows)
    if not panels:
        got = f"columns {sorted({str(k) for row in rows for k in row})}" if rows else "no rows"
        raise ArgumentError("show.curves", "rows", "at least one column of numbers", got)
    figure = new_figure(5.2 * len(panels), 3.6)
    for axes, (metric, columns) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for (colour, dashes, marker), column in zip(LOOKS, columns, strict=False):
            points = [
                (row.get("epoch", k), float(drawable(row[column])))
                for k, row in enumerate(rows, start=1)
                if is_number(row.get(column))
            ]
            axes.plot(
                *zip(*points, strict=True),
                color=colour,
                linestyle=dashes,
                markersize=4,
                marker=marker if len(points) <= 30 else None,
                label=words(column),
            )
        axes.set(title=words(metric), xlabel="epoch", ylabel=words(metric))
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(rows) == 1:
            _write_numbers(axes)
        axes.grid(alpha=0.3)
        axes.legend()
    return save(figure, target)


def _write_numbers(axes: Any) -> None:
    """Beside the points of a single epoch their numbers, and no other epochs below them."""
    for line in axes.lines:
        (x,), (y,) = line.get_data()
        axes.annotate(f"{y:.4g}", (x, y), xytext=(8, -4), textcoords="offset points")
        axes.set_xticks([x])
        line.set_markersize(8)


def metric_panels(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The columns of numbers, grouped by the metric that they measure."""
    panels: dict[str, list[str]] = {}
    columns = dict.fromkeys(name for row in rows for name in row)
    for column in columns:
        is_time = "seconds" in column or "time" in column
        if column == "epoch" or is_time or not any(is_number(row.get(column)) for row in rows):
            continue
        metric = column
        for prefix in ("validation_", "training_", "test_"):
            metric = metric.removeprefix(prefix)
        while (shorter := metric.partition("_")[2]) in columns:  # bicubic_psnr beside psnr
            metric = shorter
        panels.setdefault(metric, []).append(column)
    return panels


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def words(column: str) -> str:
    return for_matplotlib(column.replace("_", " "))
