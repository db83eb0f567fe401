"""The page of results: tables, plots, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cpu import aims
from benchmarks.cpu.measure import Point
from benchmarks.cpu.plots import draw
from benchmarks.cpu.sides import BY_LAYERS, SIDES, baseline
from benchmarks.cpu.workloads import GRID, POINTS, build
from benchmarks.networks import NETWORKS
from benchmarks.report import table, write_page
from benchmarks.timing import Times, digits
from tinygraph.base.json_text import to_json

WORKLOADS = """\
- `lenet5`, `resnet18`, `srcnn`, `gpt`: LeNet-5, 64 images of 28x28; ResNet-18 of width 16, 32
  images of 32x32; SRCNN 9-1-5, 16 crops of 33; a GPT of 2 blocks of 64, 16 windows of 32 characters
- `w1:N:D`: conv 3x3 with D filters, ReLU, max-pool 2x2, linear; N images of 28x28
- `w2`: MLP 784-512-512-10 with ReLU; batch 128
- `w3`: VGG-like, three times two conv 3x3 and max-pool 2x2, 32, 64, 128 channels; 64 images
- `w4`: MLP 2-8-1 with ReLU, mean squared error; batch 4, nothing but overhead per node"""


def milliseconds(times: Times) -> str:
    """Median and range, in ms.

    >>> milliseconds(Times.by_wall([0.002, 1.25, 0.0155]))
    '15.5 (2 to 1250)'
    """
    low, high = min(times.seconds), max(times.seconds)
    return "{} ({} to {})".format(*(digits(value * 1e3) for value in (times.median, low, high)))


def point_lines(point: Point) -> str:
    """One point as plain text, for the terminal."""
    against = baseline(point.name)
    lines = [f"{point.name}: {build(point.name).name}"]
    for side, found in point.measured.items():
        ratio = point.ratio(side, against)
        shown = f"ratio {ratio.text()}" if ratio else "no baseline"
        lines.append(
            f"    {side:<32} {milliseconds(found.times):>24} ms   {shown:<28}"
            f"{found.peak / aims.MB:7.0f} MB"
        )
    lines += [f"    left out: {line}" for line in point.left_out]
    return "\n".join(lines)


def ratio_table(points: Mapping[str, Point]) -> str:
    """A row for each side, a column for each workload; w1 at the point where all are compared."""
    names = [name for name in BY_LAYERS if name in points]
    return _ratios(points, names)


def network_table(points: Mapping[str, Point]) -> str:
    """The networks that people know: time of the baseline, and the ratio of each side to it."""
    return _ratios(points, [name for name in NETWORKS if name in points])


def _ratios(points: Mapping[str, Point], names: Sequence[str]) -> str:
    rows = []
    for side in _sides(points.values()):
        ratios = [points[name].ratio(side, baseline(name)) for name in names]
        if any(ratios):
            rows.append([side, *(ratio.text() if ratio else "" for ratio in ratios)])
    if not rows:
        return "No baseline was measured, so there are times only."
    heads = [f"{name} / {baseline(name)}" for name in names]
    return table(["side", *heads], rows)


def grid_table(points: Mapping[str, Point]) -> str:
    """w1 over batch and filters: the ratio of each side at each point."""
    names = [name for name in GRID if name in points]
    rows = []
    for side in _sides([points[name] for name in names]):
        ratios = [points[name].ratio(side, baseline(name)) for name in names]
        if sum(ratio is not None for ratio in ratios) > 1:
            rows.append([side, *(f"{ratio.median:.2f}" if ratio else "" for ratio in ratios)])
    return table(["side", *(name.removeprefix("w1:") for name in names)], rows)


def times_table(points: Mapping[str, Point]) -> str:
    """Every side at every point: time, ratio, peak memory, with their spread."""
    rows = []
    for name, point in points.items():
        for side, found in point.measured.items():
            ratio = point.ratio(side, baseline(name))
            rows.append(
                [
                    name,
                    side,
                    milliseconds(found.times),
                    ratio.text() if ratio else "",
                    f"{found.peak / aims.MB:.0f}",
                ]
            )
    return table(["point", "side", "ms a step", "ratio to the baseline", "peak MB"], rows)


def page_text(
    title: str, about: Sequence[str], points: Mapping[str, Point], pictures: Mapping[str, str]
) -> str:
    """The whole page in Markdown; `pictures` has a title for each file that was drawn."""
    versions = sorted({found.about for p in points.values() for found in p.measured.values()})
    lost = [row for row in aims.rows(points) if row[-1] == "**falls short**"]
    failed = [line for point in points.values() for line in point.failed]
    left_out = [line for point in points.values() for line in point.left_out]
    parts = [
        f"# {title}",
        "\n".join(f"- {line}" for line in (*about, *(f"side: {name}" for name in versions))),
        WORKLOADS,
        "A ratio is the time of a side divided by that of the baseline, round by round: the "
        "median, with the smallest and the largest. Below 1 the side is faster.",
    ]
    if failed:
        parts += ["## Failed", "\n".join(f"- {line}" for line in failed)]
    if any(name in points for name in NETWORKS):
        parts += ["## Networks that people know", network_table(points)]
    parts += ["## What should be reached"]
    parts += [f"{len(lost)} of {len(aims.AIMS)} fall short." if lost else "No figure falls short."]
    parts += [table(["what", "side", "measured", "at most", "aim", ""], aims.rows(points))]
    if any(name not in NETWORKS for name in points):
        parts += ["## Ratios", ratio_table(points)]
    if sum(name in points for name in GRID) > 1:
        parts += ["w1 at batch:filters, ratio to the baseline:", grid_table(points)]
    parts += [f"![{name}]({file})" for file, name in pictures.items()]
    parts += ["## Times and memory", times_table(points)]
    if left_out:
        parts += ["## Left out", "\n".join(f"- {line}" for line in left_out)]
    return "\n\n".join(parts) + "\n"


def raw(about: Sequence[str], points: Mapping[str, Point]) -> dict[str, Any]:
    """Every round of every side, so that a figure can be worked out anew."""
    return {
        "about": list(about),
        "points": {
            name: {
                side: {
                    "seconds": found.times.seconds,
                    "peak bytes": found.peak,
                    "losses": list(found.losses),
                    "about": found.about,
                }
                for side, found in point.measured.items()
            }
            for name, point in points.items()
        },
    }


def write(folder: Path, stem: str, title: str, about: Sequence[str], points: list[Point]) -> Path:
    """Page, plots and raw figures into a folder; the path of the page."""
    by_name = {point.name: point for point in points}
    ordered = {name: by_name[name] for name in (*POINTS, *by_name) if name in by_name}
    path = folder / f"{stem}.md"
    pictures = draw(ordered, folder, stem)
    write_page(path, page_text(title, about, ordered, pictures))
    text = to_json(f"{stem}.json", raw(about, ordered), indent=1)
    (folder / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
    return path


def _sides(points: Any) -> list[str]:
    """The sides that were measured anywhere, in the order of SIDES; others after them."""
    measured = dict.fromkeys(side for point in points for side in point.measured)
    known = [side.name for side in SIDES if side.name in measured]
    return known + [side for side in measured if side not in known]
