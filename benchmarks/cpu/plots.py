"""Time and memory against batch size, and the ratios as bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.cpu.measure import Measured, Point
from benchmarks.cpu.sides import baseline
from benchmarks.cpu.workloads import BATCHES, COMPARED, batch_of
from benchmarks.report import Plot, draw_lines, new_figure, plain_ticks

MB = 1e6


def draw(points: Mapping[str, Point], folder: Path, stem: str) -> dict[str, str]:
    """Draw what these points allow; titles by file name, nothing without matplotlib."""
    drawn = {}
    kinds: tuple[tuple[str, str, str, Callable[[Measured], float]], ...] = (
        ("time", "w1, 256 filters: time of a step", "ms", lambda found: found.times.median * 1e3),
        ("memory", "w1, 256 filters: peak memory", "MB", lambda found: found.peak / MB),
    )
    for name, title, unit, value in kinds:
        lines = over_batch(points, value)
        file = f"{stem}-{name}.svg"
        plot = Plot(name, title, "batch", unit, lines, log_y=True)
        if lines and draw_lines(plot, folder / file):
            drawn[file] = title
    file = f"{stem}-ratios.svg"
    if draw_ratios(points, folder / file):
        drawn[file] = "Ratios to the baseline, with smallest and largest"
    return drawn


def over_batch(
    points: Mapping[str, Point], value: Callable[[Measured], float]
) -> dict[str, list[tuple[float, float]]]:
    """Lines over the batch size at 256 filters, of sides that were measured at two or more."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name in (f"w1:{batch}:256" for batch in BATCHES):
        for side, found in points[name].measured.items() if name in points else ():
            lines.setdefault(side, []).append((float(batch_of(name)), value(found)))
    return {side: line for side, line in lines.items() if len(line) > 1}


def draw_ratios(points: Mapping[str, Point], path: Path) -> bool:
    """Bars of each side's ratio at the points where all are compared, with the spread."""
    names = [name for name in COMPARED if name in points]
    bars = [
        (f"{name}  {side}", ratio)
        for name in names
        for side in points[name].measured
        if side != baseline(name) and (ratio := points[name].ratio(side, baseline(name)))
    ]
    made = new_figure(7, 1.2 + 0.27 * len(bars)) if bars else None
    if made is None:
        return False
    figure, axes = made
    middles = [ratio.median for _, ratio in bars]
    spread = [
        [ratio.median - min(ratio.values) for _, ratio in bars],
        [max(ratio.values) - ratio.median for _, ratio in bars],
    ]
    ours = ["tab:blue" if "tinygraph" in label else "tab:gray" for label, _ in bars]
    from_one = [middle - 1 for middle in middles]  # a bar to the left is a side that is faster
    axes.barh(range(len(bars)), from_one, left=1, color=ours)
    axes.errorbar(middles, range(len(bars)), xerr=spread, fmt="none", ecolor="black", capsize=2)
    axes.set_yticks(range(len(bars)), [label for label, _ in bars])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="time / baseline (left of 1: faster)")
    plain_ticks(axes.xaxis)
    axes.set_title("Ratios to the baseline of each workload")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True
