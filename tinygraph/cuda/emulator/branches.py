"""Which basic blocks end in a conditional jump, and where it leads.

A build for traces calls a hook at the start of each basic block; where a thread goes after a block
is the next block of the same function that it enters.  Whether it had a choice is read from the
compiler's assembly text, and a table of it is added there:

        call __sanitizer_cov_trace_pc
    .Ltg_block7:                                 (operations.py)
        cmpl ...
    .Ltg_jump7_0:
        jge .L12                                 to the block behind .L12, or to the next one
        call __sanitizer_cov_trace_pc
    .Ltg_block8:
    tg_branches: .quad .Ltg_jump7_0, .Ltg_block7, .Ltg_block8, 3

The last number is that of the function.  A choice between blocks that the compiler has added to
check something (an overflow) has no hooks, and is none of the program's: of the jumps of a block
the last one that leads to a block with a hook is its choice, which has the line of the condition.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

import numpy as np

_BLOCK = re.compile(r"^\.Ltg_block(?P<number>\d+):")
_LABEL = re.compile(r"^(?P<name>\.L\w+):")
_FUNCTION = re.compile(r"^(?P<name>[A-Za-z_]\w*):")
_JUMP = re.compile(
    r"^\s+(?P<name>j[a-z]+|b(?:\.[a-z]+)?|cbn?z|tbn?z)\s+(?:.*,\s*)?(?P<target>\.L\w+)\s*(?:[#/].*)?$"
)
_ALWAYS = {"jmp", "b"}
_INSTRUCTION = re.compile(r"^\s+[a-z]")  # and no directive, which begins with a dot


def add_branches(assembly: str) -> str:
    """Assembly text with labels in front of conditional jumps and a table of them."""
    out: list[str] = []
    at_label: dict[str, int] = {}  # the block that begins at a label
    waiting: list[str] = []  # labels since the last instruction
    leads: dict[int, list[str | int]] = {}  # of a block: labels, and blocks that follow it
    jumps: dict[int, list[str]] = {}  # of a block: where its conditional jumps lead
    function = 0
    functions: dict[int, int] = {}  # of a block
    block: int | None = None
    falls = False  # whether the code goes on behind the last instruction
    for line in assembly.splitlines():
        if match := _BLOCK.match(line):
            new = int(match["number"])
            at_label.update(dict.fromkeys(waiting, new))
            if block is not None and falls and functions.get(block) == function:
                leads[block].append(new)
            block, waiting, falls = new, [], True
            leads[block], functions[block] = [], function
        elif match := _LABEL.match(line):
            waiting.append(match["name"])
        elif match := _FUNCTION.match(line):
            function, block, waiting = function + 1, None, []
        elif match := _JUMP.match(line):
            if block is not None and falls:
                if match["name"] in _ALWAYS:
                    falls = False
                else:
                    targets_of = jumps.setdefault(block, [])
                    out.append(f".Ltg_jump{block}_{len(targets_of)}:")
                    targets_of.append(match["target"])
                leads[block].append(match["target"])
            waiting = []
        elif _INSTRUCTION.match(line) and "__sanitizer_cov_trace_pc" not in line:
            waiting = []
            if line.split()[0] in ("ret", "retq", "ud2"):
                falls = False
        out.append(line)
    rows = []
    for number in sorted(jumps):
        targets = {t if isinstance(t, int) else at_label.get(t) for t in leads[number]} - {None}
        hooked = [k for k, label in enumerate(jumps[number]) if label in at_label]
        if len(targets) > 1:
            for target in sorted(t for t in targets if t is not None):
                name = f".Ltg_jump{number}_{hooked[-1] if hooked else 0}"
                rows.append((name, number, target, functions[number]))
    table = [
        '\t.section .data.rel.tg_branches,"aw"',
        "\t.balign 8",
        "\t.globl tg_branches_count",
        f"tg_branches_count:\n\t.quad {len(rows)}",
        "\t.globl tg_branches\ntg_branches:",
        *(f"\t.quad {jump}, .Ltg_block{a}, .Ltg_block{b}, {f}" for jump, a, b, f in rows),
    ]
    note = [line for line in out if ".note.GNU-stack" in line]
    return "\n".join([*out, *table, *note[:1], ""])


class Branches(NamedTuple):
    """The table of a loaded library: program counters, an entry for each way."""

    jump: np.ndarray
    block: np.ndarray
    target: np.ndarray
    function: np.ndarray


def branches(library: Any) -> Branches:
    """The table of a library that `ctypes` has loaded."""
    rows = ctypes.c_uint64.in_dll(library, "tg_branches_count").value
    table = np.array((ctypes.c_uint64 * (4 * rows)).in_dll(library, "tg_branches"), np.uint64)
    return Branches(*table.reshape(rows, 4).T)


def taken(table: Branches, keys: np.ndarray, counters: np.ndarray) -> np.ndarray:
    """For entries into blocks, in order: the jump that led into each of them, 0 where none did.

    Parameters
    ----------
    keys : array of int
        Of the thread.
    counters : array of uint64
        Of the block.
    """
    ways = {
        (int(a), int(b)): int(j)
        for j, a, b in zip(table.jump, table.block, table.target, strict=True)
    }
    function_of = dict(zip(table.block.tolist(), table.function.tolist(), strict=True))
    function_of |= dict(zip(table.target.tolist(), table.function.tolist(), strict=True))
    last: dict[tuple[int, int], int] = {}
    found = np.zeros(len(counters), np.uint64)
    for number, (key, counter) in enumerate(zip(keys.tolist(), counters.tolist(), strict=True)):
        function = function_of.get(counter)
        if function is None:
            continue
        found[number] = ways.get((last.get((key, function), 0), counter), 0)
        last[key, function] = counter
    return found
