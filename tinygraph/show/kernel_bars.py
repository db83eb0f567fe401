"""Bars for a profile: what each kernel of a step takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygraph.errors import ArgumentError, explain
from tinygraph.show.figures import new_figure, save
from tinygraph.show.paths import writable

PANELS = {  # column of a kernel -> title, unit, colour
    "seconds": ("time", "s", "#7a4cc2"),
    "bytes": ("bytes moved", "B", "#2f66c4"),
    "operations": ("operations", "FLOP", "#c4512f"),
}
PREFIXES = {1e9: "G", 1e6: "M", 1e3: "k", 1.0: "", 1e-3: "m", 1e-6: "u"}


def kernel_bars(profile: Mapping[str, Any], path: str | Path = "profile.svg") -> Path:
    """Draw the kernels of a profile, the costliest at the top: a panel for each thing measured.

    Parameters
    ----------
    profile : mapping
        What `training.Profile.to_dict()` gives.
    path : str or Path
        `.svg`, `.png` or `.pdf`.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ArgumentError
        There are no kernels, or no such format or folder.

    Examples
    --------
    >>> import tempfile, tinygraph as tg
    >>> row = {"kernel": "relu_forward<float>", "macros": {}, "bytes": 8e6, "operations": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.kernel_bars({"kernels": [row]}, f"{folder}/profile.svg").name
    'profile.svg'
    """
    target = writable("show.kernel_bars", path, (".svg", ".png", ".pdf"))
    rows = list(profile.get("kernels", ()))
    if not rows:
        raise ArgumentError(explain("show.kernel_bars", "profile", "at least one kernel", "none"))
    panels = [name for name in PANELS if any(row.get(name) for row in rows)] or ["bytes"]
    labels = [_label(row) for row in rows]
    figure = new_figure(3.4 + 3.2 * len(panels), 1.0 + 0.26 * len(rows))
    axes_of = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, name in zip(axes_of, panels, strict=True):
        title, unit, colour = PANELS[name]
        values = [row.get(name) or 0.0 for row in rows]
        factor = next((f for f in PREFIXES if max(values) >= f), min(PREFIXES))
        values = [value / factor for value in values]
        bars = axes.barh(range(len(rows)), values, color=colour, height=0.7)
        axes.bar_label(bars, [f"{value:.3g}" for value in values], padding=3, fontsize=7)
        axes.set_title(f"{title} in {PREFIXES[factor]}{unit}", fontsize=9)
        axes.margins(x=0.18)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    axes_of[0].set_yticks(range(len(rows)), labels)
    axes_of[0].invert_yaxis()
    return save(figure, target)


def _label(row: Mapping[str, Any]) -> str:
    """The kernel; where macros tell two apart, these too."""
    macros = " ".join([f"{name}={value}" for name, value in row.get("macros", {}).items()])
    return f"{row['kernel']} {macros}".strip() + (
        f"  x{row['calls']:g}" if row.get("calls", 1) != 1 else ""
    )
