"""Panels of horizontal bars beside each other: one line for each thing, one panel for each measure.

A bar may have parts, one behind the other; its number is their sum, a dash where that is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinygraph.show.figures import new_figure, save

PREFIXES = {1e9: "G", 1e6: "M", 1e3: "k", 1.0: "", 1e-3: "m", 1e-6: "u"}


@dataclass(frozen=True)
class Panel:
    """One measure of all things.

    Attributes
    ----------
    title, unit : str
        "time" and "s": the title says the prefix too.
    parts : dict of colour to list of float
        The values of all things, in their order; several parts stand one behind the other.
    legend : dict of colour to str
        What the parts are, as far as that must be said; may be empty.
    """

    title: str
    unit: str
    parts: dict[str, list[float]]
    legend: dict[str, str]


def draw_panels(labels: Sequence[str], panels: Sequence[Panel], target: Path) -> Path:
    """Write the picture: the first thing at the top."""
    figure = new_figure(3.4 + 3.2 * len(panels), 1.0 + 0.26 * len(labels))
    axes_of = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, panel in zip(axes_of, panels, strict=True):
        _draw(axes, panel, len(labels))
    axes_of[0].set_yticks(range(len(labels)), labels)
    axes_of[0].invert_yaxis()
    return save(figure, target)


def _draw(axes: Any, panel: Panel, count: int) -> None:
    totals = [sum(values) for values in zip(*panel.parts.values(), strict=True)]
    factor = next((f for f in PREFIXES if max(totals) >= f), min(PREFIXES))
    begin = [0.0] * count
    for colour, values in panel.parts.items():
        widths = [value / factor for value in values]
        bars = axes.barh(
            range(count),
            widths,
            left=begin,
            color=colour,
            height=0.7,
            label=panel.legend.get(colour),
        )
        begin = [left + width for left, width in zip(begin, widths, strict=True)]
    # The bars of the last part end where the whole bar ends, also where they have no width.
    numbers = [f"{total / factor:.3g}" if total else "-" for total in totals]
    axes.bar_label(bars, numbers, padding=3, fontsize=7)
    axes.set_title(f"{panel.title} in {PREFIXES[factor]}{panel.unit}", fontsize=9)
    axes.set_xlim(0, 1.18 * max(totals) / factor or 1.0)  # room for the numbers
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    if panel.legend:
        axes.legend(
            fontsize=7,
            frameon=False,
            ncols=len(panel.legend),
            loc="upper center",
            bbox_to_anchor=(0.5, -0.25 / (0.26 * count + 0.4)),
        )
