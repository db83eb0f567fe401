"""Bars for a profile: what each kernel of a step takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinygraph.errors import ArgumentError
from tinygraph.show.bar_panels import Panel, draw_panels
from tinygraph.show.paths import writable

PANELS = {  # column of a kernel -> title, unit, colour
    "seconds": ("time", "s", "#7a4cc2"),
    "bytes": ("bytes moved", "B", "#2f66c4"),
    "operations": ("operations", "FLOP", "#c4512f"),
}


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
    >>> row = {"kernel": "unary_forward<float, Relu>", "macros": {}, "bytes": 8e6, "operations": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tg.show.kernel_bars({"kernels": [row]}, f"{folder}/profile.svg").name
    'profile.svg'
    """
    target = writable("show.kernel_bars", path, (".svg", ".png", ".pdf"))
    rows = list(profile.get("kernels", ()))
    if not rows:
        raise ArgumentError("show.kernel_bars", "profile", "at least one kernel", "none")
    panels = [name for name in PANELS if any(row.get(name) for row in rows)] or ["bytes"]
    drawn = [
        Panel(title, unit, {colour: [row.get(name) or 0.0 for row in rows]}, {})
        for name in panels
        for title, unit, colour in [PANELS[name]]
    ]
    return draw_panels([_label(row) for row in rows], drawn, target)


def _label(row: Mapping[str, Any]) -> str:
    """The kernel; where macros tell two apart, these too."""
    macros = " ".join([f"{name}={value}" for name, value in row.get("macros", {}).items()])
    return f"{row['kernel']} {macros}".strip() + (
        f"  x{row['calls']:g}" if row.get("calls", 1) != 1 else ""
    )
