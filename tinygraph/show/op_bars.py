"""Bars for a profile on the cpu: what each op of a step takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygraph.errors import ArgumentError
from tinygraph.show.bar_panels import Panel, draw_panels
from tinygraph.show.paths import writable

TIMES = {  # part of an op's time -> colour, name
    "forward_seconds": ("#7a4cc2", "forward"),
    "backward_seconds": ("#b9a0e3", "backward"),
    "update_seconds": ("#3d8f6b", "update"),
    "outside": ("#9aa0a6", ""),  # stands alone on a line that says so
}
OTHERS = {  # column of an op -> title, unit, colour
    "bytes": ("bytes moved", "B", "#2f66c4"),
    "operations": ("operations", "FLOP", "#c4512f"),
    "new_bytes": ("new arrays", "B", "#c98a1b"),
}


def op_bars(profile: Mapping[str, Any], path: str | Path = "profile.svg") -> Path:
    """Draw the ops of a step, the longest at the top: a panel for each thing measured.

    The first panel shows wall time, forward and backward one behind the other; below the ops stands
    the time outside of them, so that the bars add up to the step.  A measure that is 0 everywhere
    has no panel: a plan makes no new arrays.

    Parameters
    ----------
    profile : mapping
        What `training.OpProfile.to_dict()` gives.
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ArgumentError
        There are no ops, or no such format or folder.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> row = {"op": "relu", "calls": 2, "forward_seconds": 1e-3, "backward_seconds": 2e-3}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.op_bars({"ops": [row]}, f"{folder}/profile.svg").name
    'profile.svg'
    """
    target = writable("show.op_bars", path, (".svg", ".png", ".pdf"))
    rows = list(profile.get("ops", ()))
    if not rows:
        raise ArgumentError("show.op_bars", "profile", "at least one op", "none")
    labels = [
        f"{row['op']}  x{row['calls']:g}" if row.get("calls", 1) != 1 else row["op"] for row in rows
    ]
    outside = profile.get("outside_seconds")
    if outside is not None:
        rows.append({"op": "", "outside": outside})
        labels.append("outside of ops")
    return draw_panels(labels, [_times(rows), *_others(rows)], target)


def _times(rows: list[dict[str, Any]]) -> Panel:
    parts = {name: _column(rows, name) for name in TIMES}
    used = [name for name in TIMES if any(parts[name])] or ["forward_seconds"]
    legend = {TIMES[name][0]: TIMES[name][1] for name in used if TIMES[name][1]}
    return Panel("time", "s", {TIMES[name][0]: parts[name] for name in used}, legend)


def _others(rows: list[dict[str, Any]]) -> list[Panel]:
    return [
        Panel(title, unit, {colour: values}, {})
        for name, (title, unit, colour) in OTHERS.items()
        if any(values := _column(rows, name))
    ]


def _column(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [float(row.get(name) or 0.0) for row in rows]
