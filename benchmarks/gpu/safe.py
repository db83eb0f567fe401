"""Every kernel once, its results against numpy; then under compute-sanitizer.

memcheck and racecheck have the last word on what the emulator's checker says of the same launches:
it calls them clean, as the tests show.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed

from benchmarks import children
from benchmarks.gpu import rehearsal, sanitizer
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import Table
from tests.cuda.launches import families

TITLE = "Every kernel, alone and under compute-sanitizer"
LIMIT = 180  # seconds of one child
AT_ONCE = min(8, os.cpu_count() or 1)
TOOLS = ("memcheck", "racecheck")
REHEARSED = ("relu.cu", "sum.cu")


def run(room: Room) -> Result:
    result = Result(TITLE)
    files = list(REHEARSED) if room.rehearse else sorted(families())
    groups = [files[at::AT_ONCE] for at in range(min(AT_ONCE, len(files)))]
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        result.left_out.append("compute-sanitizer is absent: kernels ran alone only")
    shown = Table(["with", "kernels launched", "wrong or not launched", "errors that it names"])
    result.blocks.append(shown)
    for name in ("", *(TOOLS if tool else ())):
        words = [tool, "--tool", name] if tool and name else []
        made = wrong = errors = 0
        with ThreadPoolExecutor(AT_ONCE) as pool:
            running = [pool.submit(_launched, [*map(str, words)], files, room) for files in groups]
            for future in as_completed(running):
                launched, lines, found = future.result()
                made, wrong, errors = made + launched, wrong + len(lines), errors + found
                if lines:
                    result.blocks.append("\n".join(f"- {name or 'alone'}: {x}" for x in lines[:8]))
        shown.rows.append([name or "nothing", str(made), str(wrong), str(errors) if name else ""])
        if wrong or errors or not made:
            result.failed = "a kernel is wrong on this device"
        room.tell(result)
    return result


def _launched(tool: list[str], files: list[str], room: Room) -> tuple[int, list[str], int]:
    """Kernels that a child launched, what it called wrong, and errors that the tool names."""
    child = rehearsal.command("benchmarks.gpu.launch_kernels", "--device", room.device, *files)
    try:
        out = children.run([*tool, *child], LIMIT)
    except subprocess.TimeoutExpired as error:
        return 0, [f"{', '.join(files)}: stopped after {LIMIT} s; {_last(str(error.output))}"], 0
    made = re.search(r"^launched (\d+) kernels", out.stdout, re.MULTILINE)
    wrong = re.findall(r"^wrong: (.*)", out.stdout, re.MULTILINE)
    if made is None:
        wrong.append(f"{', '.join(files)}: {_last(out.stderr)}")
    errors = sanitizer.parse(out.stdout + out.stderr).errors if tool else 0
    return int(made[1]) if made else 0, wrong, errors or 0


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"
