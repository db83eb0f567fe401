"""The checker's counts of memory requests beside the profiler's, ncu, on the same launches.

Sectors are the 32 bytes in which global memory is fetched; wavefronts the passes that a request to
shared memory takes; conflicts the wavefronts beyond those that would do.
"""

from __future__ import annotations

import shutil
import subprocess

from benchmarks import children
from benchmarks.gpu import gallery, profiler
from benchmarks.gpu.gallery import GalleryKernel
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.gpu.verdicts import child
from benchmarks.report import Table
from tinygraph.cuda import Report

TITLE = "The checker's counts beside the profiler's"
LIMIT = 120  # seconds
NEAR = 0.05  # so far apart two counts may be and still agree: ncu samples what it replays

Key = tuple[str, str, str]  # space, access, quantity


def run(room: Room) -> Result:
    result = Result(TITLE)
    tool = shutil.which("ncu")
    if tool is None:
        result.left_out.append("ncu is absent: its column is empty")
    kernels = gallery.for_counts()
    shown = Table(["kernel", "count", "checker", "ncu", "agree"])
    result.blocks.append(shown)
    compared, agreed = 0, 0
    for kernel in kernels[: 3 if room.rehearse else None]:
        own = counts(kernel.check(profile=True))
        theirs: dict[Key, float] = {}
        if tool is not None:
            try:
                theirs = profiled(kernel, tool, room.device)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                result.left_out.append(f"{kernel.name}: {' '.join(str(error).split())[:300]}")
        for key, value in own.items():
            other = theirs.get(key)
            if not value and not other:
                continue
            same = other is not None and abs(value - other) <= NEAR * max(value, other)
            compared += other is not None
            agreed += same
            said = "" if other is None else f"{other:.0f}"
            verdict = "" if other is None else "yes" if same else "**no**"
            shown.rows.append([kernel.name, " ".join(key), str(value), said, verdict])
            if other is not None and not same:
                result.lost.append(f"{kernel.name}, {' '.join(key)}: {value}, ncu says {other:.0f}")
        room.tell(result)
    if compared:
        result.blocks.append(f"{agreed} of {compared} counts agree within {NEAR:.0%}.")
    return result


def counts(report: Report) -> dict[Key, int]:
    """The checker's counts of a launch, summed over its lines, under the keys of the profiler."""
    sums = dict.fromkeys(profiler.METRICS, 0)
    for line in report.lines:
        values = {
            "requests": line.requests,
            "sectors": line.sectors,
            "wavefronts": line.wavefronts,
            "conflicts": line.wavefronts - line.least_wavefronts,
        }
        for space, access, quantity in sums:
            if (line.space, line.access) == (space, access):
                sums[space, access, quantity] += values[quantity]
    return sums


def profiled(kernel: GalleryKernel, tool: str, device: str) -> dict[Key, float]:
    """The profiler's counts of the same launch; ValueError if it prints none."""
    command = [
        tool,
        "--csv",
        "--metrics",
        ",".join(profiler.METRICS.values()),
        "--kernel-name",
        f"regex:{kernel.function}",
        "--target-processes",
        "all",
        *child([kernel.path], device),
    ]
    out = children.run(command, LIMIT)
    values = profiler.parse(out.stdout + out.stderr)
    return {key: values[name] for key, name in profiler.METRICS.items() if name in values}
