"""The command; what it does is in the package's words.  Ends with 0, or 2 for bad arguments."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import host
from benchmarks.children import ROOT
from benchmarks.distributed import page, recipes
from benchmarks.distributed.turns import OVERLAP, RANKS, UNDISTURBED, measure
from benchmarks.timing import digits

POINTS = ("w1:1000:32", "w1:1000:256", "w3", "w2", "digits")
OVERLAPPED = ("w3", "w2", "tiny")
ROUNDS, BURST = 9, 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parse(arguments)
    kept = args.output / f"{page.NAME}.json"
    if args.page:
        figures = page.Figures.from_json(kept.read_text(encoding="utf-8"))
    else:
        figures = page.Figures(_about(args))
        for name in args.only or POINTS:
            point = measure(name, args.rounds, args.burst, args.limit)
            figures.points.append(point)
            print(f"{name}: efficiency of two ranks {point.efficiency(RANKS).text()}", flush=True)
            if name in OVERLAPPED:
                both = measure(name, args.rounds, args.burst, args.limit, OVERLAP)
                figures.overlap.append(both)
                print(f"{name}: in buckets / at the end {both.overlap.text()}", flush=True)
        if not args.only:
            figures.sent, figures.noise = recipes.measure(), recipes.noise_of()
    print(page.write(args.output, figures))
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.distributed",
        description="Time training steps on two ranks beside one process, on one page.",
    )
    add = parser.add_argument
    names = [*POINTS, "tiny"]
    add("--only", action="append", choices=names, help="a network; may be repeated; no recipes")
    add("--rounds", type=int, default=ROUNDS, help=f"that count (default {ROUNDS})")
    add("--burst", type=float, default=BURST, help=f"seconds of a turn (default {BURST})")
    add("--limit", type=float, default=600.0, help="seconds for a network (default 600)")
    add("--page", action="store_true", help="write the page of figures that were measured before")
    add("--output", type=Path, default=ROOT / "docs/benchmarks", help="folder of the page")
    args = parser.parse_args(arguments)
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


def _about(args: argparse.Namespace) -> list[str]:
    """What the figures hold for."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    core = os.environ.get("OPENBLAS_CORETYPE", "chosen for the processor")
    return [
        f"{date}, tinygraph {host.commit()}",
        f"{host.processor()}, {host.cores()} cores; Python {platform.python_version()}; kernels of "
        f"OpenBLAS: {core}",
        f"load before the run: {host.load()} programs",
        f"{args.rounds} rounds that count, bursts of {digits(args.burst)} s; undisturbed: other "
        f"programs took at most {UNDISTURBED} of a core",
    ]


if __name__ == "__main__":
    sys.exit(main())
