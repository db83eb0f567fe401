"""Bars for a profile: what each op of a step takes, or each kernel.

One line for each, the costliest at the top, and a panel for each thing measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinygraph.base import AnyPath, ArgumentError, writable
from tinygraph.ops.common import documented
from tinygraph.show.figures import PICTURE, new_figure, save

PREFIXES = {1e9: "G", 1e6: "M", 1e3: "k", 1.0: "", 1e-3: "m", 1e-6: "u"}

PANELS = {  # title, unit -> the columns that stand one behind the other: colour, name
    ("time", "s"): {
        "forward_seconds": ("#7a4cc2", "forward"),
        "backward_seconds": ("#b9a0e3", "backward"),
        "update_seconds": ("#3d8f6b", "update"),
        "outside_seconds": ("#9aa0a6", ""),  # stands alone on a line that says so
        "kernel_seconds": ("#7a4cc2", ""),
    },
    ("predicted time", "s"): {"predicted_seconds": ("#7a4cc2", "")},
    ("bytes moved", "B"): {"bytes": ("#2f66c4", "")},
    ("operations", "FLOP"): {"operations": ("#c4512f", "")},
    ("new arrays", "B"): {"new_bytes": ("#c98a1b", "")},
}


class _Part(NamedTuple):
    values: list[float]
    colour: str
    name: str


@documented(PICTURE)
def profile_bars(profile: Mapping[str, Any], path: AnyPath = "profile.svg") -> Path:
    """Draw a profile: a panel for each thing measured that is not 0 everywhere.

    Of ops the first panel shows wall time, forward and backward one behind the other.

    Parameters
    ----------
    profile : mapping
        What `to_dict()` of a `training.Profile` or of `Graph.kernel_table()` gives.

    Raises
    ------
    ArgumentError
        ... There are no ops and no kernels.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> row = {"op": "relu", "calls": 2, "forward_seconds": 1e-3, "backward_seconds": 2e-3}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.profile_bars({"ops": [row]}, f"{folder}/profile.svg").name
    'profile.svg'
    """
    target = writable("show.profile_bars", path, (".svg", ".png", ".pdf"))
    rows = [*profile.get("ops", ()), *profile.get("kernels", ())]
    if not rows:
        raise ArgumentError("show.profile_bars", "profile", "at least one op or kernel", "none")
    labels = [_label(row) for row in rows]
    panels = {panel: parts for panel, parts in _panels(rows).items() if parts}
    figure = new_figure(3.4 + 3.2 * len(panels), 1.0 + 0.26 * len(labels))
    axes_of = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, ((title, unit), parts) in zip(axes_of, panels.items(), strict=True):
        _draw(axes, title, unit, parts)
    axes_of[0].set_yticks(range(len(labels)), labels)
    axes_of[0].invert_yaxis()
    return save(figure, target)


def _panels(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[_Part]]:
    """The parts that some row has; bytes are drawn where nothing else is."""
    found = {
        panel: [
            _Part(values, colour, name)
            for column, (colour, name) in columns.items()
            if any(values := [float(row.get(column) or 0.0) for row in rows])
        ]
        for panel, columns in PANELS.items()
    }
    if not any(found.values()):
        found["bytes moved", "B"] = [_Part([0.0] * len(rows), "#2f66c4", "")]
    return found


def _label(row: Mapping[str, Any]) -> str:
    """The op or the kernel; where macros tell two apart, these too."""
    macros = [f"{name}={value}" for name, value in (row.get("macros") or {}).items()]
    calls = [f"x{row['calls']:g}"] if row.get("calls", 1) > 1 else []
    return " ".join([row.get("kernel") or row["op"], *macros, *calls])


def _draw(axes: Any, title: str, unit: str, parts: Sequence[_Part]) -> None:
    """One panel: the parts of a bar stand one behind the other, their sum beside them."""
    values = np.array([part.values for part in parts])
    totals = values.sum(axis=0)
    count = len(totals)
    factor = next((f for f in PREFIXES if totals.max() >= f), min(PREFIXES))
    ends = values.cumsum(axis=0) / factor
    for part, widths, end in zip(parts, values / factor, ends, strict=True):
        bars = axes.barh(
            range(count),
            widths,
            left=end - widths,
            color=part.colour,
            height=0.7,
            label=part.name or None,
        )
    # The bars of the last part end where the whole bar ends, also where they have no width.
    numbers = [f"{total / factor:.3g}" if total else "-" for total in totals]
    axes.bar_label(bars, numbers, padding=3, fontsize=7)
    axes.set_title(f"{title} in {PREFIXES[factor]}{unit}", fontsize=9)
    axes.set_xlim(0, 1.18 * totals.max() / factor or 1.0)  # room for the numbers
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    named = [part for part in parts if part.name]
    if named:
        axes.legend(
            fontsize=7,
            frameon=False,
            ncols=len(named),
            loc="upper center",
            bbox_to_anchor=(0.5, -0.25 / (0.26 * count + 0.4)),
        )
