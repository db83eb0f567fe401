"""The checker's verdicts on the gallery beside compute-sanitizer's four tools.

The checker runs here on the emulator; compute-sanitizer watches the same launches on the GPU, in
child processes that are stopped when a kernel hangs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks import children
from benchmarks.gpu import gallery, rehearsal, sanitizer
from benchmarks.gpu.gallery import GalleryKernel
from benchmarks.gpu.page import Result
from benchmarks.gpu.room import Room
from benchmarks.report import table

TITLE = "The checker beside compute-sanitizer"
LIMIT = 60  # seconds of one child: CuPy starts, a kernel compiles, tools slow it down
AT_ONCE = min(12, os.cpu_count() or 1)
HANGS = "hangs"
HUNG_KINDS = {"timeout", "deadlock", "barrier-divergence", "warp-sync"}  # that a hang can tell
REHEARSED = ("oob_tail_guard_missing", "race_reverse_no_barrier", "transpose_padded")

Cell = tuple[str, set[str]]  # what the table says, and the kinds that were named


def run(room: Room) -> Result:
    result = Result(TITLE)
    wrong, right = gallery.wrong(), gallery.right()
    if room.rehearse:
        wrong, right = ([k for k in kernels if k.name in REHEARSED] for kernels in (wrong, right))
    elif room.quick:
        wrong, right = wrong[::4], right[::4]
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        result.left_out.append("compute-sanitizer is absent: its columns are empty")
    columns: dict[str, Callable[[GalleryKernel], Cell]] = {"checker": checker_cell}
    for name in sanitizer.TOOLS if tool else ():
        columns[name] = lambda kernel, name=name: sanitizer_cell(kernel, tool, name, room.device)
    cells: dict[str, list[Cell]] = {}
    for name, judge in columns.items():
        cells[name] = _all(judge, [*wrong, *right])
        result.blocks, result.lost = [], []
        _write(result, wrong, right, cells)
        room.tell(result)
    if room.rehearse:
        out = children.run(child([kernel.path for kernel in right], room.device), LIMIT)
        if out.returncode:
            raise RuntimeError(f"the child process broke:\n{out.stderr[-2000:]}")
        said = ", ".join(f"`{line}`" for line in out.stdout.splitlines())
        result.blocks.append(f"The child process says of the right kernels: {said}")
    return result


def child(paths: Sequence[object], device: str) -> list[str]:
    """The command that launches these files."""
    return rehearsal.command("benchmarks.gpu.launch_gallery", "--device", device, *paths)


def checker_cell(kernel: GalleryKernel) -> Cell:
    """The kinds that our checker names."""
    kinds = {finding.kind for finding in kernel.check().findings}
    return ", ".join(sorted(kinds)) or "clean", kinds


def sanitizer_cell(kernel: GalleryKernel, tool: str, name: str, device: str) -> Cell:
    """The kinds and lines that one tool of compute-sanitizer names."""
    command = [tool, "--tool", name, *child([kernel.path], device)]
    try:
        out = children.run(command, LIMIT)
    except subprocess.TimeoutExpired:
        return HANGS, HUNG_KINDS
    verdict = sanitizer.parse(out.stdout + out.stderr)
    if verdict.findings:
        places = [f"{kind}:{line}" if line else kind for kind, line in verdict.findings[:3]]
        return ", ".join(places), set(verdict.kinds)
    if verdict.errors:
        return f"{verdict.errors} errors of another kind", set()
    if out.returncode or verdict.errors is None:
        words = (out.stderr or out.stdout).strip().splitlines()
        return f"did not run: {words[-1][:80] if words else out.returncode}", set()
    return "clean", set()


def _all(judge: Callable[[GalleryKernel], Cell], kernels: Sequence[GalleryKernel]) -> list[Cell]:
    """The cell of each kernel; an error becomes the cell's text.

    The checker is called by one thread only: its launches use all cores as it is.
    """

    def cell(kernel: GalleryKernel) -> Cell:
        try:
            return judge(kernel)
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:80]}", set()

    if judge is checker_cell:
        return [cell(kernel) for kernel in kernels]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(cell, kernels))


def _write(
    result: Result,
    wrong: list[GalleryKernel],
    right: list[GalleryKernel],
    cells: dict[str, list[Cell]],
) -> None:
    """Counts of what each found, then every kernel, and what the checker missed."""
    tools = [name for name in cells if name != "checker"]
    named = {name: [kinds for _, kinds in of] for name, of in cells.items()}
    if tools:
        named["compute-sanitizer"] = [
            set().union(*kinds) for kinds in zip(*(named[name] for name in tools), strict=True)
        ]
    found = {
        name: [
            bool(kinds & set(kernel.expected))
            for kernel, kinds in zip(wrong, of[: len(wrong)], strict=True)
        ]
        for name, of in named.items()
    }
    blamed = {
        name: sum(cell[0] != "clean" for cell in of[len(wrong) :]) for name, of in cells.items()
    }
    rows = [
        [
            name,
            f"{sum(of)} of {len(wrong)}",
            f"{blamed[name]} of {len(right)}" if name in blamed else "",
        ]
        for name, of in found.items()
    ]
    head = ["tool", "wrong kernels named with the right kind", "right kernels not called clean"]
    result.blocks.append(table(head, rows))
    result.blocks.append(
        "A kernel that hangs under a tool counts as named where the mistake is one that hangs."
    )
    body = [
        [kernel.name, ", ".join(kernel.expected) or "nothing", *(c[at][0] for c in cells.values())]
        for at, kernel in enumerate([*wrong, *right])
    ]
    result.blocks.append(table(["kernel", "planted", *cells], body))
    others = found.get("compute-sanitizer", [False] * len(wrong))
    for kernel, own, other in zip(wrong, found["checker"], others, strict=True):
        if other and not own:
            result.lost.append(f"{kernel.name}: compute-sanitizer names it, the checker does not")
    own_blame = blamed["checker"]
    if own_blame:
        result.failed = f"the checker does not call {own_blame} right kernels clean"
