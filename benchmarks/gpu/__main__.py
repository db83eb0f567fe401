"""The command: `make gpu`, or `python -m benchmarks.gpu`; what it does is in the package's words.

Ends with 0; 1 if a section failed or was stopped; 2 for arguments that cannot be; 3 without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import SECTIONS

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
    add("--minutes", type=float, help="begin no section that may not end within so many minutes")
    add(
        "--continue",
        dest="go_on",
        action="store_true",
        help="leave out what the page has; go on where an earlier call was stopped",
    )
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
    """Run the sections one after the other."""
    from benchmarks.gpu.page import FINISHED

    start = time.monotonic()
    page = _begin(args, cupy)
    there = page.sections if args.go_on else {}
    good = True
    for name in args.only or SECTIONS:
        if name in there and there[name].state == FINISHED:
            print(f"{name}: on the page", flush=True)
            continue
        left = args.minutes * 60 - (time.monotonic() - start) if args.minutes else None
        if left is not None and left < SECTIONS[name]:
            print(f"{name}: left for --continue, it may take {SECTIONS[name]} s", flush=True)
            good = False
            continue
        ended_well = _run(name, page, args)
        good = good and ended_well
        if name == "smoke" and not ended_well and len(args.only or SECTIONS) > 1:
            print("a first result is wrong: nothing is measured before it is right", flush=True)
            break
    print(page.path)
    return DONE if good else FAILED


def _begin(args: argparse.Namespace, cupy: Any) -> Any:
    """The page with its head, and the sections of an earlier run that stay."""
    from benchmarks.gpu import machine, torch_side
    from benchmarks.gpu.page import REHEARSAL, Page
    from benchmarks.gpu.room import ROUNDS
    from benchmarks.host import slug

    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    name = "rehearsal" if cupy is None else slug(machine.gpu_name(cupy))
    folder = args.output or (
        Path(tempfile.mkdtemp(prefix="tinygraph-gpu-")) if args.rehearse else DEFAULT_OUTPUT
    )
    rounds = "rehearse" if args.rehearse else "quick" if args.quick else "full"
    page = Page(folder.absolute() / f"gpu-{name}-{date}.md", list(SECTIONS), args.rehearse)
    if args.rehearse:
        title = f"{REHEARSAL}: tinygraph without a GPU, {date}"
    else:
        title = f"tinygraph on {machine.gpu_name(cupy)}, {date}"
    about = machine.about(cupy, torch_side.find(gpu=cupy is not None), date) + (
        f"\n- rounds: {ROUNDS[rounds]}, taking turns; figures are "
        "medians with smallest and largest; * marks a figure whose wall time is much longer than "
        "its events" + ("\n- quick: fewer sizes, kernels and rounds" if args.quick else "")
    )
    page.begin(title, about, keep=bool(args.go_on or args.only))
    return page


def _run(name: str, page: Any, args: argparse.Namespace) -> bool:
    """One section in a process of its own; whether it ended well."""
    from benchmarks import children
    from benchmarks.gpu import rehearsal
    from benchmarks.gpu.page import FINISHED

    print(f"{name} ...", end=" ", flush=True)
    start = time.perf_counter()
    flags = [flag for flag in ("rehearse", "quick", "go_on") if getattr(args, flag)]
    words = [f"--{flag.replace('_', '-')}" for flag in flags]
    command = rehearsal.command("benchmarks.gpu.section", name, page.path, *words)
    try:
        done = children.run(command, SECTIONS[name])
        said = done.stderr if done.returncode else ""
        stopped = "" if done.returncode in (DONE, FAILED) else f"ended with {done.returncode}"
    except subprocess.TimeoutExpired as error:
        said, stopped = str(error.stderr or ""), f"stopped at its limit of {SECTIONS[name]} s"
    if stopped:
        page.stop(name, stopped, said)
    good = not stopped and page.sections[name].state == FINISHED
    seconds = time.perf_counter() - start
    print(f"{'done' if good else 'FAILED'}, {seconds:.0f} s", flush=True)
    if not good and said:
        print(said[-2000:], file=sys.stderr)
    return good


if __name__ == "__main__":
    sys.exit(main())
