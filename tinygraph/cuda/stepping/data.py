"""Traces of a launch as the data of its page: warps, requests, memory, mistakes.

The script gets, as JSON:

    kernel, grid, block, threads, blocks      of the launch; `blocks` counts all of them
    files     [{name, lines}]
    arrays    [{name, space, type, bytes, element, base, shape, used}]; `element`: bytes of a cell;
              `base`: where the array begins in its first sector; `used`: whether it is touched
    variables [[name, function, line]]
    runs      [{order, findings, blocks: [{number, name, initial, absent, steps, jumps, notes}]}]
    steps     [{kind, warp, epoch, file, line, lanes, array, size, offsets, values, stored, cost,
              left, lost, set, rows, odd, call, findings}]; `lanes`, `left`, `lost` are masks; `set`
              has [variable, mask of lanes, their values] for what was assigned before it;
              `stored` are the cells that are another after it; `odd` are those of the lanes whose
              value is not what the cell holds, for the threads of the run came in another order
    outcome   [[element, value in one order, in the other]] where they differ; `more`: how many
              are not listed
    cut       whether events came later that are left out
    notes     what is to be said about the whole
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinygraph.cuda.emulator.findings import SECTOR, Finding, Index3
from tinygraph.cuda.emulator.lockstep import WARP
from tinygraph.cuda.emulator.trace import Trace, TracedArray
from tinygraph.cuda.stepping.cells import Cells
from tinygraph.cuda.stepping.events import Events
from tinygraph.cuda.stepping.steps import BlockSteps

MOST_OUTCOMES = 8
ORDERS = ("threads in order", "threads reversed")


def launch_data(traces: Sequence[Trace], outcome: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """The data of a page.

    Parameters
    ----------
    traces : one or two Trace
        Of one launch; the second one with the threads in the other order.
    outcome : rows of (element, value, value)
        Where the two leave different values.
    """
    first = traces[0]
    files = list(dict.fromkeys(file for trace in traces for file in trace.files))
    lines = {file: trace.files[file] for trace in traces for file in trace.files}
    runs = [
        {"order": order, **run_data(trace, files)}
        for order, trace in zip(ORDERS, traces, strict=False)
    ]
    used = {number for trace in traces for number in trace.events["array"].tolist()}
    return {
        "kernel": first.kernel,
        "grid": first.grid,
        "block": first.block_size,
        "threads": int(np.prod(first.block_size)),
        "blocks": int(np.prod(first.grid)),
        "files": [{"name": Path(file).name, "lines": lines[file]} for file in files],
        "arrays": [
            array_data(array) | {"used": number in used}
            for number, array in enumerate(first.arrays)
        ],
        "variables": [(v.name, v.function, v.line) for v in first.variables],
        "runs": runs,
        "outcome": outcome[:MOST_OUTCOMES],
        "more": len(outcome[MOST_OUTCOMES:]),
    }


def array_data(array: TracedArray) -> dict[str, Any]:
    cells = cells_of(array)
    dtype = array.dtype.name if array.dtype is not None else f"{cells.element} bytes each"
    return {
        "name": array.name,
        "space": array.space,
        "type": dtype if cells.whole else f"structs of {array.element} bytes",
        "bytes": array.bytes,
        "element": cells.element,
        "base": cells.base,
        "shape": array.shape if cells.whole else (),
    }


def cells_of(array: TracedArray) -> Cells:
    """What an array holds before the launch."""
    dtype = array.dtype
    if dtype is not None and (dtype.itemsize != array.element or dtype.itemsize > 8):
        dtype = None
    held = None if array.initial is None else array.initial.tobytes()
    shared = array.space == "shared"
    base = 0 if shared else array.address % SECTOR
    return Cells(array.bytes, dtype, array.element, held, base, shared)


def run_data(trace: Trace, files: Sequence[str]) -> dict[str, Any]:
    """All blocks of one trace, one after the other as they ran: each finds what others left."""
    memory = [cells_of(array) for array in trace.arrays]
    findings = [finding_data(found, trace, files) for found in trace.findings]
    blocks = []
    for number in sorted(trace.blocks):
        memory = [
            cells_of(array) if array.space == "shared" else cells
            for array, cells in zip(trace.arrays, memory, strict=True)
        ]
        complete = set(range(number)) <= set(trace.blocks)
        if (trace.events["block"] == number).any():  # a launch that is stopped comes to no more
            blocks.append(block_data(trace, number, memory, findings, complete, files))
    return {"findings": findings, "blocks": blocks}


def block_data(
    trace: Trace,
    number: int,
    memory: list[Cells],
    findings: list[dict[str, Any]],
    complete: bool,
    files: Sequence[str],
) -> dict[str, Any]:
    """One block: what memory holds when it begins, and its steps."""
    initial = [cells.runs() for cells in memory]
    events = Events(trace, number, files)
    made = BlockSteps(events, memory, int(np.prod(trace.block_size)), complete)
    jumps = []
    for k, found in enumerate(findings):
        at = made.step_at(found["event"]) if found["block"] == number else None
        if at is None:
            continue
        if found["kind"] == "barrier-divergence":  # it is seen when the barrier opens all the same
            later = range(at, len(made.steps))
            at = next((k for k in later if made.steps[k]["kind"] == "open"), at)
        made.steps[at].setdefault("findings", []).append(k)
        jumps.append((k, at))
    notes = []
    if not complete:
        notes.append("Blocks before it are not recorded: memory shows what this one has seen.")
    return {
        "number": number,
        "name": _block_name(number, trace.grid),
        "initial": initial,
        "absent": _without_events(events, int(np.prod(trace.block_size))),
        "steps": made.steps,
        "jumps": sorted(jumps, key=lambda jump: jump[1]),
        "notes": notes,
    }


def _without_events(events: Events, threads: int) -> list[int]:
    """For each warp the mask of the threads that never had their turn."""
    seen = events.ended | set(events.threads)
    masks = [0] * -(-threads // WARP)
    for thread in set(range(threads)) - seen:
        masks[thread // WARP] |= 1 << thread % WARP
    return masks


def _number(index: Index3, extents: Index3) -> int:
    return index[0] + extents[0] * (index[1] + extents[1] * index[2])


def _block_name(number: int, grid: Index3) -> str:
    at = (number % grid[0], number // grid[0] % grid[1], number // grid[0] // grid[1])
    axes = 3 if grid[2] > 1 else 2 if grid[1] > 1 else 1
    return ", ".join(map(str, at[:axes]))


def finding_data(found: Finding, trace: Trace, files: Sequence[str]) -> dict[str, Any]:
    """A mistake: its words, both threads by their numbers, both lines."""

    def number(thread: Index3 | None, block: Index3 | None) -> int | None:
        if thread is None or block != found.block:
            return None
        return _number(thread, trace.block_size)

    def place(file: str, line: int | None) -> dict[str, int] | None:
        return {"file": files.index(file), "line": line} if line and file in files else None

    return {
        "kind": found.kind,
        "message": found.message,
        "array": found.array,
        "index": found.index,
        "event": found.event,
        "block": None if found.block is None else _number(found.block, trace.grid),
        "thread": number(found.thread, found.block),
        "otherThread": number(found.other_thread, found.other_block),
        "otherAt": None
        if found.other_thread is None or found.other_block is None
        else (
            _number(found.other_block, trace.grid),
            _number(found.other_thread, trace.block_size),
        ),
        "place": place(found.file, found.line),
        "other": place(found.other_file, found.other_line),
    }
