"""The table and the figures 2 and 3 of benchmarks/numba_cnn.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinygraph.base.page_paths import writable
from tinygraph.show.curves import LOOKS, curves
from tinygraph.show.figures import new_figure, save

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
    """
    target = writable("draw_times", path, (".svg", ".png", ".pdf"))
    figure = new_figure(10, 3.8)
    medians = [row["median"] for row in times if "median" in row]
    panels = (
        ("batch_size", sizes["batches"], "filters", sizes["at_filters"]),
        ("filters", sizes["filters"], "batch_size", sizes["at_batch"]),
    )
    for axes, (key, values, other, fixed) in zip(figure.subplots(1, 2), panels, strict=True):
        _grouped_bars(axes, [row for row in times if row[other] == fixed], key, values)
        title = f"{other.replace('_', ' ')} {fixed}"
        axes.set(title=title, xlabel=key.replace("_", " "), ylabel="seconds of an epoch")
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
        own = [row for row in rows if row["variant"] == name and "median" in row]
        across = [values.index(row[key]) + (k - (len(names) - 1) / 2) * width for row in own]
        heights = [row["median"] for row in own]
        below = [row["median"] - row["low"] for row in own]
        above = [row["high"] - row["median"] for row in own]
        looks = {"capsize": 3, "label": name, "color": LOOKS[k % len(LOOKS)][0]}
        axes.bar(across, heights, 0.9 * width, yerr=[below, above], **looks)


def draw_accuracy(rows: Sequence[Mapping[str, Any]], path: str | Path = "accuracy.svg") -> Path:
    """Draw figure 3: accuracy over the epochs, of what is learnt from and of what is held out."""
    columns = "epoch", "accuracy", "validation_accuracy"
    return curves([{name: row[name] for name in columns} for row in rows], path)
