"""How many floating-point operations a launch executes.

The profiling build calls a hook at the start of each basic block (-fsanitize-coverage=trace-pc).
How much arithmetic lies in a block is read from the compiler's assembly text, and a table of it is
added there:

        call __sanitizer_cov_trace_pc
    .Ltg_block7:                            the return address of the call: the name of the block
        mulss ...   addss ...               2 operations
    tg_flops: .quad .Ltg_block7, 2

Times the number of visits, that is the count.  A fused multiply-add is two operations; a call of
exp, sqrt and the like is one.  Comparisons, minima, maxima, signs, rounding to integers and
conversions are none, as in the formulas that kernels state (operation_counts.py).
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

# Builds are cached by their flags, and the table is part of a build: this number counts up when
# other things are counted.
_COUNTER = "-DTG_OPERATIONS_COUNTER=2"
FLAGS = {
    "gcc": ["-fsanitize-coverage=trace-pc", _COUNTER],
    # clang leaves out the hooks of blocks that others imply, unless it is told not to
    "clang": ["-fsanitize-coverage=bb,no-prune,trace-pc", _COUNTER],
}

_HOOK = re.compile(r"^\s+(?:call[a-z]*|bl)\s+[_*]*_?_sanitizer_cov_trace_pc\b")
_X86 = re.compile(
    r"^\s+v?(?P<name>add|sub|mul|div|sqrt|fn?m(?:add|sub)\d{3})(?P<lanes>[sp])(?P<type>[sd])\s"
)
_ARM = re.compile(
    r"^\s+(?P<name>fadd|fsub|fmul|fdiv|fsqrt|fnmul|fn?m(?:add|sub)|fmla|fmls)"
    r"\s+(?P<register>[sdv])"
)
_CALL = re.compile(r"^\s+(?:call[a-z]*|bl|jmp|b)\s+\*?(?P<name>[a-z]\w*)(?:@\w+)?\s*$")
_FUNCTION = re.compile(
    r"(exp(2|10|m1)?|log(2|10|1p)?|sqrt|cbrt|pow|a?(sin|cos|tan)h?|atan2|erfc?|[tl]gamma|fmod|hypot)f?"
)


def add_table(assembly: str) -> str:
    """Assembly text with a label after each call of the hook and a table of operations."""
    out: list[str] = []
    counts: list[int] = []
    for line in assembly.splitlines():
        out.append(line)
        if _HOOK.match(line):
            out.append(f".Ltg_block{len(counts)}:")
            counts.append(0)
        elif counts:
            counts[-1] += operations_of(line)
    rows = [f"\t.quad .Ltg_block{i}, {count}" for i, count in enumerate(counts)]
    table = [
        '\t.section .data.rel.tg_flops,"aw"',
        "\t.balign 8",
        "\t.globl tg_flops_count",
        "tg_flops_count:",
        f"\t.quad {len(rows)}",
        "\t.globl tg_flops",
        "tg_flops:",
        *rows,
    ]
    note = [line for line in out if ".note.GNU-stack" in line]  # it ends the text as g++ writes it
    return "\n".join([*out, *table, *note[:1], ""])


def operations_of(line: str) -> int:
    """Floating-point operations of one instruction.

    >>> operations_of("\\tmulss\\t%xmm1, %xmm0"), operations_of("\\tcall\\texpf@PLT")
    (1, 1)
    """
    match = _X86.match(line)
    if match:
        packed = {"s": 4, "d": 2}[match["type"]] if match["lanes"] == "p" else 1
        return packed * (2 if match["name"].startswith("f") else 1)
    match = _ARM.match(line)
    if match:
        fused = "madd" in match["name"] or "msub" in match["name"] or "fml" in match["name"]
        return (2 if fused else 1) * (4 if match["register"] == "v" else 1)
    match = _CALL.match(line)
    if match:
        name = match["name"]
        return 2 if name in ("fma", "fmaf") else int(_FUNCTION.fullmatch(name) is not None)
    return 0


def count(kernel: Any, runtime: Any) -> int:
    """Operations of the last launch: those of each basic block times its visits."""
    rows = ctypes.c_uint64.in_dll(kernel, "tg_flops_count").value
    table = (ctypes.c_uint64 * (2 * rows)).in_dll(kernel, "tg_flops")
    weights = dict(zip(table[0::2], table[1::2], strict=True))
    place, times, number, total = ctypes.c_size_t(), ctypes.c_uint64(), 0, 0
    while runtime.tg_profile_block(number, ctypes.byref(place), ctypes.byref(times)):
        number += 1
        if place.value:
            total += weights.get(place.value, 0) * times.value
    return total
