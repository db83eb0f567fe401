"""The table and the figures 2 and 3 of benchmarks/numba_cnn.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinygraph.show.curves import LOOKS
from tinygraph.show.figures import new_figure, save
from tinygraph.show.paths import writable

LOG_FROM = 30  # ratio of the slowest to the fastest above which times stand on a logarithmic axis


def table(times: Sequence[Mapping[str, Any]]) -> list[str]:
    """The times as lines of text.

    >>> for line in table([{"variant": "CPU", "filters": 8, "batch_size": 50, "median": 2.0,
    ...                     "low": 1.9, "high": 2.5}]):
    ...     print(line)
    variant          filters  batch  seconds of an epoch (lowest to highest)
    CPU                    8     50    2.00 (1.90 to 2.50)
    """
    lines = ["variant          filters  batch  seconds of an epoch (lowest to highest)"]
    for row in times:
        size = f"{row['variant']:15}  {row['filters']:7}  {row['batch_size']:5}"
        if "median" in row:
            spread = f"({row['low']:.2f} to {row['high']:.2f})"
            lines.append(f"{size}  {row['median']:6.2f} {spread}")
        else:
            lines.append(f"{size}  {row['error']}")
    return lines


def draw_times(
    times: Sequence[Mapping[str, Any]], sizes: Mapping[str, Any], path: str | Path = "times.svg"
) -> Path:
    """Draw figure 2: bars of an epoch's time over the batch size, and over the filters.

    The bar is the median, the line on it goes from the lowest to the highest.

    Parameters
    ----------
    times : sequence of mappings
        What `epoch_times` returned.
    sizes : mapping
        The fields of the Sizes that it was given.
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.
    """
    target = writable("draw_times", path, (".svg", ".png", ".pdf"))
    figure = new_figure(10, 3.8)
    panels = [
        (
            "batch size",
            f"{sizes['at_filters']} filters",
            "batch_size",
            sizes["batches"],
            [row for row in times if row["filters"] == sizes["at_filters"]],
        ),
        (
            "filters",
            f"batch size {sizes['at_batch']}",
            "filters",
            sizes["filters"],
            [row for row in times if row["batch_size"] == sizes["at_batch"]],
        ),
    ]
    medians = [row["median"] for row in times if "median" in row]
    for axes, (label, title, key, values, rows) in zip(figure.subplots(1, 2), panels, strict=True):
        _grouped_bars(axes, rows, key, values)
        axes.set(title=title, xlabel=label, ylabel="seconds of an epoch")
        axes.set_xticks(range(len(values)), [str(value) for value in values])
        if medians and max(medians) > LOG_FROM * min(medians):
            axes.set_yscale("log")
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend()
    return save(figure, target)


def _grouped_bars(
    axes: Any, rows: Sequence[Mapping[str, Any]], key: str, values: Sequence[int]
) -> None:
    """A group for each value, with a bar for each variant in it."""
    names = list(dict.fromkeys(row["variant"] for row in rows))
    width = 0.8 / max(len(names), 1)
    for k, name in enumerate(names):
        own = {row[key]: row for row in rows if row["variant"] == name and "median" in row}
        places = [i for i, value in enumerate(values) if value in own]
        heights = [own[values[i]]["median"] for i in places]
        below = [own[values[i]]["median"] - own[values[i]]["low"] for i in places]
        above = [own[values[i]]["high"] - own[values[i]]["median"] for i in places]
        across = [i + (k - (len(names) - 1) / 2) * width for i in places]
        axes.bar(
            across,
            heights,
            0.9 * width,
            yerr=[below, above],
            capsize=3,
            label=name,
            color=LOOKS[k % len(LOOKS)][0],
        )


def draw_accuracy(
    rows: Sequence[Mapping[str, Any]], title: str, path: str | Path = "accuracy.svg"
) -> Path:
    """Draw figure 3: accuracy over the epochs, of what is learnt from and of what is held out.

    Parameters
    ----------
    rows : sequence of mappings
        Of each epoch, with `epoch`, `accuracy` and `validation_accuracy`.
    title : str
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.
    """
    target = writable("draw_accuracy", path, (".svg", ".png", ".pdf"))
    figure = new_figure(6, 3.8)
    axes = figure.subplots()
    columns = (
        ("accuracy", "training, mean over the epoch"),
        ("validation_accuracy", "validation, after the epoch"),
    )
    for (column, label), (colour, dashes, marker) in zip(columns, LOOKS, strict=False):
        axes.plot(
            [row["epoch"] for row in rows],
            [row[column] for row in rows],
            color=colour,
            linestyle=dashes,
            marker=marker if len(rows) <= 30 else None,
            markersize=4,
            label=label,
        )
    axes.set(title=title, xlabel="epoch", ylabel="accuracy")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    return save(figure, target)
