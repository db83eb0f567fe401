"""The main kernels under the profiler, ncu: time, instructions, multiply-adds, bytes.

Clocks are as they are (`--clock-control none`): the same as in the other sections.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess

from benchmarks import children
from benchmarks.gpu import profiler, rehearsal
from benchmarks.gpu.launch_ops import WORKS
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import Table

TITLE = "The main kernels under the profiler"
LIMIT = 60  # seconds of one child


def run(room: Room) -> Result:
    result = Result(TITLE)
    tool = shutil.which("ncu")
    if tool is None:
        result.left_out.append("ncu is absent: nothing is profiled")
    head = ["work", "kernel", "launches", "us", "warp instructions", "multiply-adds among them"]
    shown = Table([*head, "MB of memory", "GB/s", "warps of the most"])
    result.blocks.append(shown)
    for work in room.choose([*WORKS], [*WORKS], ["sgemm", "seed"]):
        words = [work, "--device", room.device, *(["--small"] if room.rehearse else [])]
        child = rehearsal.command("benchmarks.gpu.launch_ops", *words)
        metrics = ",".join(profiler.OF_KERNELS.values())
        watched = [tool, "--csv", "--clock-control", "none", "--metrics", metrics] if tool else []
        try:
            out = children.run([*watched, *child], LIMIT)
            if out.returncode:
                raise RuntimeError(out.stderr.strip()[-300:])
            if tool:
                shown.rows += rows(work, profiler.by_kernel(out.stdout + out.stderr))
        except (OSError, ValueError, RuntimeError, subprocess.SubprocessError) as error:
            result.left_out.append(f"{work}: {' '.join(str(error).split())[:300]}")
            result.failed = "a work did not run under the profiler"
        room.tell(result)
    return result


def rows(work: str, kernels: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    """A row for each kernel: medians over its launches."""
    found = []
    for kernel, launches in kernels.items():
        ns, issued, fused, size, warps = (
            statistics.median(launch.get(metric, float("nan")) for launch in launches)
            for metric in profiler.OF_KERNELS.values()
        )
        share = fused / 32 / issued if issued else float("nan")
        numbers = [f"{ns / 1e3:.3g}", f"{issued:.4g}", f"{share:.0%}", f"{size / 1e6:.4g}"]
        speed = f"{size / ns:.3g}" if ns else ""
        found.append([work, kernel, str(len(launches)), *numbers, speed, f"{warps:.0f} %"])
    return found
