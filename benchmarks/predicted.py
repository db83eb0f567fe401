"""Predicted training steps on GPUs that are not there, beside measured ones where a page has them.

    python -m benchmarks.predicted                    writes docs/benchmarks/predicted.md
    python -m benchmarks.predicted --output FOLDER    there

Nothing is run: launches are taken down, and a roofline says what each could take.  Pages of `make
gpu` are looked for in the same folder.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.gpu import ours
from benchmarks.gpu.page import REHEARSAL, read_sections
from benchmarks.machine_code.issue import IssuedOn
from benchmarks.report import table, write_page
from benchmarks.workloads import Workload, mlp, seed_network, vgg
from tinygraph.cuda import nvrtc
from tinygraph.cuda.data_sheets import GPUS
from tinygraph.training import Profile, profile_steps

NAME = "predicted.md"
NETWORKS = (
    lambda: seed_network(1000, 256), lambda: seed_network(1000, 32), mlp, vgg,
)  # fmt: skip
SHOWN = "h200"  # kernel by kernel
AIM = 250  # microseconds on it, for the first network
ABOUT = """\
# Predicted steps

**Nothing here was measured, and no GPU was there.** What a training step of each network would
take at least: bytes, issued instructions and operations of its launches by the data sheet of a GPU,
one launch after the other, as one CUDA graph. How it is worked out, and what it leaves out:
[on a GPU that is not there](../profile.md#on-a-gpu-that-is-not-there). Real steps take longer.

The seed network: conv 3x3, ReLU, max-pool 2x2, linear, cross-entropy, on images of 28x28; the
VGG-like one: three times two conv 3x3 and max-pool 2x2, on images of 3x32x32. All learn by SGD.
"""
_SIDE = re.compile(r"tinygraph (?P<way>\w+), captured")
_TIME = re.compile(r"(?P<ms>[\d.]+(?:e[+-]?\d+)?)\*? \(")


class Step(NamedTuple):
    """A way of a training step: network, way, and its profile by GPU."""

    network: str
    way: str
    profiles: Mapping[str, Profile]

    def microseconds(self, gpu: str) -> float:
        return (self.profiles[gpu].total.predicted_seconds or 0.0) * 1e6


def predicted(networks: Sequence[Workload], gpus: Sequence[str] = tuple(GPUS)) -> list[Step]:
    """Every way of a step of each network, on each GPU."""
    return [
        Step(
            w.name,
            way,
            {gpu: profile_steps(step, "emulator", 1, gpu=IssuedOn(gpu)) for gpu in gpus},
        )
        for w in networks
        for way, step in ours.steps(w, "emulator").items()
    ]


class Measured(NamedTuple):
    """A captured step of a page of `make gpu`, in microseconds."""

    gpu: str
    page: str
    network: str
    way: str
    microseconds: float


def measured(folder: Path) -> list[Measured]:
    """What pages of `make gpu` in a folder say of captured steps in strict float32."""
    found = []
    for path in sorted(folder.glob("gpu-*.md")):
        text = path.read_text(encoding="utf-8")
        gpu = gpu_of(text.partition("\n")[0])
        steps = read_sections(text).get("steps")
        if gpu is None or steps is None:
            continue
        for network, side, time in _rows(steps.text, ours.STRICT):
            way, taken = _SIDE.fullmatch(side), _TIME.match(time)
            if way and taken:
                found.append(
                    Measured(gpu, path.name, network, way["way"], float(taken["ms"]) * 1e3)
                )
    return found


def gpu_of(title: str) -> str | None:
    """The GPU of a page's title; None for a rehearsal, and for one that has no data sheet here.

    >>> gpu_of("# tinygraph on NVIDIA GeForce RTX 4090, 2026-01-01")
    'rtx-4090'
    """
    words = set(re.split(r"[^a-z0-9]+", title.lower()))
    if REHEARSAL in title:
        return None
    return next((name for name in GPUS if set(name.split("-")) <= words), None)


def _rows(text: str, precision: str) -> Iterator[list[str]]:
    """The first three cells of each row of the table under a precision."""
    below = text.partition(f"**{precision}**")[2].partition("\n**")[0]
    for line in below.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| ") and len(cells) >= 3:
            yield cells[:3]


def page(steps: Sequence[Step], found: Sequence[Measured]) -> str:
    """The page in Markdown."""
    gpus = list(steps[0].profiles)
    lines = [
        [s.network, s.way, f"{s.profiles[gpus[0]].total.calls:g}"]
        + [f"{s.microseconds(gpu):.0f}" for gpu in gpus]
        for s in steps
    ]
    head = ["network", "way", "launches", *[f"{gpu}, us" for gpu in gpus]]
    made = f"{date.today().isoformat()}, NVRTC {nvrtc.version()}, `python -m benchmarks.predicted`."
    parts = [
        ABOUT.strip(),
        made,
        table(head, lines),
        "## Beside measurements",
        _beside(steps, found),
    ]
    shown = [step for step in steps if step.network == steps[0].network and SHOWN in step.profiles]
    parts[3:3] = [_aim(step) for step in shown[-1:]]
    for step in shown:
        title = f"## {step.network[0].upper()}{step.network[1:]}, {step.way}, on {SHOWN}"
        parts += [title, _kernels(step.profiles[SHOWN])]
    return "\n\n".join(parts) + "\n"


def _aim(step: Step) -> str:
    """What the aim is, and what the prediction leaves of it."""
    found = step.microseconds(SHOWN)
    by: dict[str, float] = {}
    for row in step.profiles[SHOWN]:
        name = row.bound_by or ""
        by[name] = by.get(name, 0.0) + (row.predicted_seconds or 0.0) * 1e6
    shares = ", ".join(f"{us:.0f} us by {name}" for name, us in sorted(by.items()) if us >= 1)
    left = AIM - found
    words = (
        f"{left:.0f} us are left for what a bound from below leaves out: waiting for memory and at "
        "barriers, what stands before and after main loops, clocks below the boost clock"
        if left > 0
        else f"{-left:.0f} us are missing even if nobody ever waits"
    )
    return (
        f"The aim for the {step.network} is a step of at most {AIM} us on an {SHOWN.upper()}. "
        f"Predicted, {step.way}: {found:.0f} us ({shares}); {words}."
    )


def _beside(steps: Sequence[Step], found: Sequence[Measured]) -> str:
    by_name = {(step.network, step.way): step for step in steps}
    rows = []
    for one in found:
        step = by_name.get((one.network, one.way))
        if step and one.gpu in step.profiles:
            expected = step.microseconds(one.gpu)
            ratio = f"{one.microseconds / expected:.2f}"
            cells = (
                f"{expected:.0f}",
                f"{one.microseconds:.0f}",
                ratio,
                f"[{one.gpu}]({one.page})",
            )
            rows.append([one.network, one.way, *cells])
    if not rows:
        return (
            "No page of measurements of such a step is kept yet: see [measuring on a GPU](gpu.md)."
        )
    head = ["network", "way", "predicted, us", "measured, us", "measured / predicted", "page"]
    return table(head, rows)


def _kernels(profile: Profile) -> str:
    rows = [
        [
            f"`{row.label}`",
            f"{row.calls:g}",
            f"{row.bytes / 1e6:.1f}",
            f"{(row.operations or 0) / 1e9:.2f}",
            f"{(row.predicted_seconds or 0) * 1e6:.1f}",
            row.bound_by or "",
        ]
        for row in profile
    ]
    total = profile.total
    rows.append(
        ["total", f"{total.calls:g}", f"{total.bytes / 1e6:.1f}",
         f"{(total.operations or 0) / 1e9:.2f}", f"{(total.predicted_seconds or 0) * 1e6:.1f}", ""]
    )  # fmt: skip
    return table(["kernel", "launches", "MB", "GFLOP", "predicted, us", "bound by"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks"), metavar="FOLDER")
    folder = parser.parse_args().output
    steps = predicted([make() for make in NETWORKS])
    write_page(folder / NAME, page(steps, measured(folder)))
    print(folder / NAME)


if __name__ == "__main__":
    main()
