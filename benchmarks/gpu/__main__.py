"""The command: `make gpu`, or `python -m benchmarks.gpu`; what it does is in the package's words.

Ends with 0; 1 if a section failed; 2 for arguments that cannot be; 3 without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SECTIONS = ("suite", "verdicts", "counts", "gemm", "conv", "steps")
DONE, FAILED, NO_GPU = 0, 1, 3
DEFAULT_OUTPUT = Path(__file__).parents[2] / "docs/benchmarks"


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parse(arguments)
    from benchmarks.gpu import machine  # needs nothing but Python

    cupy, missing = (None, "") if args.rehearse else machine.find_gpu()
    if missing:
        print(
            f"make gpu: {missing}. Way out: a machine with an NVIDIA GPU and CuPy, or "
            "`make gpu ARGS=--rehearse` for a rehearsal on the CPU",
            file=sys.stderr,
        )
        return NO_GPU
    absent = [name for name in ("numpy", "pytest") if importlib.util.find_spec(name) is None]
    if absent:
        print(
            f"make gpu: {' and '.join(absent)} not found for {sys.executable}. Way out: "
            "`make gpu PYTHON=...` with a Python that has them",
            file=sys.stderr,
        )
        return FAILED
    return _measure(args, cupy)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description="Measure tinygraph on a GPU, on one page."
    )
    add = parser.add_argument
    add("--only", action="append", choices=SECTIONS, help="this section alone; may be repeated")
    add("--quick", action="store_true", help="fewer sizes, kernels and rounds")
    add(
        "--output",
        type=Path,
        help="folder of the page (default docs/benchmarks; a rehearsal's "
        "goes into a temporary folder)",
    )
    add("--rehearse", action="store_true", help="every section as far as it goes without a GPU")
    return parser.parse_args(arguments)


def _measure(args: argparse.Namespace, cupy: Any) -> int:
    """Run the sections and write the page after each: what was measured is never lost."""
    from benchmarks.gpu import machine, page, torch_side
    from benchmarks.gpu.room import EventClock, Room, WallClock
    from benchmarks.host import slug
    from benchmarks.report import write_page

    torch = torch_side.find(gpu=cupy is not None)
    device = "emulator" if cupy is None else "cuda"
    clock = WallClock() if cupy is None else EventClock(cupy)
    room = Room(device, clock, torch, args.rehearse, args.quick)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    name = "rehearsal" if cupy is None else slug(machine.gpu_name(cupy))
    folder = args.output or (
        Path(tempfile.mkdtemp(prefix="tinygraph-gpu-")) if args.rehearse else DEFAULT_OUTPUT
    )
    path = folder / f"gpu-{name}-{date}.md"
    if args.rehearse:
        title = f"{page.REHEARSAL}: tinygraph without a GPU, {date}"
    else:
        title = f"tinygraph on {machine.gpu_name(cupy)}, {date}"
    about = machine.about(cupy, torch, date) + (
        f"\n- rounds: {room.rounds}, taking turns; figures are medians with smallest and largest; "
        "* marks a figure whose wall time is much longer than its events"
        + ("\n- quick: fewer sizes, kernels and rounds" if args.quick else "")
    )
    before = page.read_sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    sections = before if args.only and not args.rehearse else {}
    failed = False
    for section in args.only or SECTIONS:
        text, good = _run_section(section, room, folder, path.stem)
        sections[section] = text
        failed = failed or not good
        ordered = {known: sections[known] for known in SECTIONS if known in sections}
        write_page(path, page.page_text(title, about, ordered, args.rehearse))
    print(path)
    return FAILED if failed else DONE


def _run_section(name: str, room: Any, folder: Path, stem: str) -> tuple[str, bool]:
    """A section's text, and whether it ended well; its error where it broke."""
    from benchmarks.gpu import page, plots

    print(f"{name} ...", end=" ", flush=True)
    start = time.perf_counter()
    title = name
    try:
        module = importlib.import_module(f"benchmarks.gpu.{name}")
        title = module.TITLE
        result = module.run(room)
        pictures = plots.draw(result.plots, folder, stem, room.rehearse)
        if result.plots and not pictures:
            result.left_out.append("plots: matplotlib is absent")
        text, good = page.section_text(result, pictures, room.rehearse), not result.failed
    except Exception:
        text, good = page.error_text(title, traceback.format_exc(), room.rehearse), False
    seconds = time.perf_counter() - start
    print(f"{'done' if good else 'FAILED'}, {seconds:.0f} s", flush=True)
    return text, good


if __name__ == "__main__":
    sys.exit(main())
