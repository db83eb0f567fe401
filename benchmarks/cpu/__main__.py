"""The command: `make bench`, or `python -m benchmarks.cpu`; what it does is in the package's words.

Ends with 0; 1 if a side of tinygraph's own broke or disagrees; 2 for arguments that cannot be.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import host
from benchmarks.children import ROOT
from benchmarks.cpu import page, peers
from benchmarks.cpu.client import Client
from benchmarks.cpu.measure import Point, measure
from benchmarks.cpu.sides import SIDES, SLOW_TO_START, Side, at_point, environment
from benchmarks.cpu.workloads import POINTS, QUICK

DONE, FAILED = 0, 1
DEFAULT_OUTPUT = ROOT / "build/bench"
ROUNDS, QUICK_ROUNDS = 9, 5


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parse(arguments)
    found, absent = peers.gather(args.environments, args.peers)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = [f"date: {date}", *_about(args)]
    about += [f"left out: {line}" for line in absent]
    print("\n".join(about), flush=True)
    sides = [side for side in SIDES if side.peer == "" or side.peer in found]
    if args.quick:
        sides = [side for side in sides if side.name not in SLOW_TO_START]
    stem = f"cpu-{host.slug(host.processor())}-{date}"
    title = f"A training step on {host.processor()}, {date}"
    points: list[Point] = []
    for name in _points(args):
        start = _starter(found, args.threads, not args.exported_blas)
        point = measure(name, at_point(sides, name), start, args.rounds)
        points.append(point)
        print("\n" + page.point_lines(point), flush=True)
        path = page.write(args.output, stem, title, about, points)  # nothing measured is lost
    print(f"\n{path}")
    return FAILED if any(point.failed for point in points) else DONE


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cpu", description="Time training steps on a CPU, on one page."
    )
    add = parser.add_argument
    add(
        "--quick",
        action="store_true",
        help="one point of each workload, five rounds, and no torch.compile",
    )
    add(
        "--peers",
        type=str.split,
        metavar='"NAME ..."',
        help=f"make the environments of these, and compare with these alone, of: "
        f"{' '.join(peers.PEERS)}; an empty string: with none (default: those that stand, and "
        "torch where pip finds a wheel for CPUs)",
    )
    add(
        "--only",
        action="append",
        metavar="POINT",
        help="a workload (w1) or a point (w1:100:256); may be repeated",
    )
    add("--threads", type=int, default=2, help="cores that every side may use (default 2)")
    add("--rounds", type=int, help=f"default {ROUNDS}, quick {QUICK_ROUNDS}")
    add(
        "--exported-blas",
        action="store_true",
        help="keep OPENBLAS_CORETYPE as exported; by default OpenBLAS chooses for the processor",
    )
    add("--output", type=Path, default=DEFAULT_OUTPUT, help="folder of the page (build/bench)")
    add(
        "--environments",
        type=Path,
        default=peers.DEFAULT_FOLDER,
        help="folder of the peers' environments (.venv/peers)",
    )
    args = parser.parse_args(arguments)
    unknown = [name for name in args.peers or () if name not in peers.PEERS]
    if unknown:
        parser.error(f"no such peer: {' '.join(unknown)}; there are {' '.join(peers.PEERS)}")
    if not _points(args):
        parser.error(f"no such point: {' '.join(args.only)}; there are {' '.join(POINTS)}")
    args.rounds = args.rounds or (QUICK_ROUNDS if args.quick else ROUNDS)
    if args.rounds < 1 or args.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    return args


def _points(args: argparse.Namespace) -> list[str]:
    """The points of this run; a point that is named is measured although the run is quick."""
    if not args.only:
        return list(QUICK if args.quick else POINTS)
    pool = QUICK if args.quick else POINTS
    return [
        name
        for name in POINTS
        if name in args.only or (name in pool and name.split(":")[0] in args.only)
    ]


def _about(args: argparse.Namespace) -> list[str]:
    """The lines under the title that say what the figures hold for."""
    core = os.environ.get("OPENBLAS_CORETYPE")
    if core is None:
        blas = "OPENBLAS_CORETYPE is not set: OpenBLAS chose its kernels for the processor (native)"
    elif args.exported_blas:
        blas = f"OPENBLAS_CORETYPE={core}, as exported: not the kernels for the processor"
    else:
        blas = f"OPENBLAS_CORETYPE={core} was exported and is taken back for every side (native)"
    return [
        f"tinygraph: {host.commit()}",
        f"machine: {host.processor()}, {platform.machine()}, {host.cores()} cores, of which each "
        f"side may use {min(args.threads, host.cores())}; Python {platform.python_version()}",
        f"load before the run: {host.load()} programs (well above 0: other work takes part)",
        blas,
        f"rounds: {args.rounds}, taking turns" + ("; quick" if args.quick else ""),
    ]


def _starter(found: Mapping[str, Path], threads: int, native_blas: bool):  # type: ignore[no-untyped-def]
    """How a side's process is started, in the environment of its peer."""

    def start(side: Side, point: str) -> Client:
        python = found.get(side.peer, Path(sys.executable))
        count = str(side.threads or threads)
        command = [str(python), "-m", "benchmarks.cpu.worker", side.module, side.variant, point]
        variables = environment(side, threads, native_blas)
        variables |= peers.variables(side.peer, python)
        return Client([*command, count], variables)

    return start


if __name__ == "__main__":
    # Ended from outside, it ends its workers first: they would go on to the end of a request.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
