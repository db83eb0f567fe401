"""The page that steps through a launch of a kernel: `Kernel.steps`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinygraph.base import AnyPath, writable
from tinygraph.base.page_paths import write
from tinygraph.base.stepped_page import page
from tinygraph.cuda.emulator.findings import Index3
from tinygraph.cuda.emulator.trace import Trace
from tinygraph.cuda.extents import check_grid
from tinygraph.cuda.stepping.cells import as_json
from tinygraph.cuda.stepping.data import launch_data

if TYPE_CHECKING:
    from tinygraph.cuda.kernel import Kernel

SCRIPTS = ("launch.js", "lanes.js", "memory.js", "kernel.js")  # each needs those before it
MOST_BLOCKS = 8  # where nobody says which
ENDLESS = {"timeout", "deadlock"}  # what is found where a launch comes to no end
FIGURE = """<div id="choice"></div><div id="notes"></div>
<h3 id="file"></h3><ol id="code" tabindex="0" aria-label="source"></ol>
<details><summary>memory requests so far, by line</summary><div class="scroll"><table>
<thead><tr><th>line</th><th>access</th><th>bytes</th><th>requests</th><th>took</th>
<th>at least</th></tr></thead><tbody id="totals"></tbody></table></div></details>"""


def kernel_steps(
    kernel: Kernel,
    path: AnyPath,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    blocks: Sequence[Any] | None = None,
    **options: Any,
) -> Path:
    """Write the page of a launch; `Kernel.steps` says what the arguments are."""
    target = writable("Kernel.steps", path, (".html", ".htm"))
    first, second, differ = both_orders(kernel, grid, block, args, blocks, options)
    return write("Kernel.steps", target, launch_page(first, second, differ))


def launch_page(first: Trace, second: Trace | None, differ: Sequence[Sequence[Any]]) -> str:
    """The page of a launch that was traced with its threads in order and, perhaps, reversed.

    The second one is left out where it teaches nothing: where both leave the same (`differ` is
    empty) and nothing races, and where the checker stops them before their ends.
    """
    traces = [first] if second is None else [first, second]
    stopped = second is None or any(trace.events["refused"].any() for trace in traces)
    raced = any(f.kind == "race" for trace in traces for f in trace.findings)
    both = not stopped and (raced or bool(differ))
    data = launch_data(traces if both else [first], differ if both else [])
    data["cut"] = first.cut > 0
    data["notes"] = _notes(first, same=not (both or stopped))
    return page(
        first.kernel + _extents(" grid", first.grid) + _extents(" block", first.block_size),
        data,
        script="".join(_read(name) for name in SCRIPTS),
        style=_read("kernel.css"),
        figure=FIGURE,
    )


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def both_orders(
    kernel: Kernel,
    grid: Any,
    block: Any,
    args: Sequence[Any],
    blocks: Sequence[Any] | None,
    options: Mapping[str, Any],
) -> tuple[Trace, Trace | None, list[tuple[str, Any, Any]]]:
    """The launch with its threads in order and reversed, and what the two leave different.

    Where nobody says which blocks, these are the first ones and those in which a mistake is found.
    A launch that comes to no end is not tried in the other order: it would wait as long again, and
    what it had left by then would be a matter of time.
    """
    again, backwards = _copied(args), _copied(args)
    extents = check_grid(kernel.name, grid)
    some = [_index(n, extents) for n in range(min(MOST_BLOCKS, math.prod(extents)))]
    chosen = list(blocks) if blocks is not None else some
    first = kernel.trace(grid, block, *args, blocks=chosen, **options)
    others = {f.block for f in first.findings if f.block is not None} - set(some)
    if blocks is None and others:
        chosen += sorted(others)[:MOST_BLOCKS]
        first = kernel.trace(grid, block, *again, blocks=chosen, **options)
    if any(f.kind in ENDLESS for f in first.findings):
        return first, None, []
    second = kernel.trace(grid, block, *backwards, blocks=chosen, reverse=True, **options)
    names = [parameter.name for parameter in kernel.signature.parameters]
    return first, second, list(_differences(names, args, backwards))


def _copied(args: Sequence[Any]) -> list[Any]:
    """The arguments with arrays of their own, under their marks."""
    made: dict[int, np.ndarray] = {}  # an array that is given twice stays one

    def copy(array: np.ndarray) -> np.ndarray:
        return made.setdefault(id(array), array.copy())

    copies = []
    for argument in args:
        if isinstance(argument, np.ndarray):
            argument = copy(argument)
        elif hasattr(argument, "array"):
            argument = type(argument)(copy(argument.array))
        copies.append(argument)
    return copies


def _differences(
    names: Sequence[str], one: Sequence[Any], other: Sequence[Any]
) -> Iterator[tuple[str, Any, Any]]:
    """(element, value, value) of all elements that have not the same bits in both."""
    for name, a, b in zip(names, one, other, strict=True):
        a, b = getattr(a, "array", a), getattr(b, "array", b)
        if not isinstance(a, np.ndarray):
            continue
        rows = [x.reshape(-1).view(np.uint8).reshape(-1, x.itemsize) for x in (a, b)]
        for index in np.flatnonzero((rows[0] != rows[1]).any(axis=1)).tolist():
            values = [as_json(x.reshape(-1)[index].tobytes(), x.dtype) for x in (a, b)]
            yield f"{name}[{index}]", values[0], values[1]


def _index(number: int, grid: Index3) -> Index3:
    return number % grid[0], number // grid[0] % grid[1], number // grid[0] // grid[1]


def _extents(word: str, extents: Index3) -> str:
    used = extents[: max(k for k in range(1, 4) if k == 1 or extents[k - 1] > 1)]
    return f",{word} {' × '.join(map(str, used))}"


def _notes(trace: Trace, same: bool) -> list[str]:
    notes = []
    if trace.cut:
        notes.append(
            f"{len(trace):,} events are shown; {trace.cut:,} more came later and are left out, "
            "which a larger limit records."
        )
    if same and not trace.findings:
        notes.append("With the threads in the other order the launch leaves the same bytes.")
    elif any(f.kind == "race" for f in trace.findings):
        notes.append("A race: the values are those of one order of the threads, out of many.")
    return notes
