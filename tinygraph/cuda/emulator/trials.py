"""Undefined values where no clang is there that follows them: less is found, and more slowly.

A value that a lane takes from one that is absent: the launch is tried again with other values in
its place.  If the arrays then hold something else, it was used.

A local variable without a value: what the compiler says of it.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tinygraph.cuda.arguments import Argument
from tinygraph.cuda.emulator.again import launched
from tinygraph.cuda.emulator.books import checker_library
from tinygraph.cuda.emulator.compiler import INCLUDE, find_compiler
from tinygraph.cuda.emulator.copies import Copy
from tinygraph.cuda.emulator.findings import CAUSES, Finding
from tinygraph.cuda.emulator.native import Three

# Large ones of both signs, as floats and as integers; the first launch had zeros.
_VALUES = (0x7F7F7F7F7F7F7F7F, 0xFF7F7F7FFF7F7F7F)
_WARNING = re.compile(
    r"^(?P<file>.*?):(?P<line>\d+):\d+: warning: (?P<text>.*) \[-W(?:maybe-)?uninitialized\]$",
    re.MULTILINE,
)


def absent_values(
    kernel: Any,
    arguments: Sequence[Argument],
    left: list[Copy],
    grid: Three,
    block: Three,
    shared: int,
    seconds: float,
) -> list[Finding]:
    """Whether what a launch has `left` depends on values of absent lanes."""
    library = checker_library()
    for value in _VALUES:
        launch = launched(kernel, arguments, grid, block, shared, seconds, absent=value)
        with launch as (kind, copies):
            if kind or _held(copies) != _held(left):
                library.tg_check_absent_used()
                found = kernel.findings(arguments)
                return [f for f in found if f.kind == "warp-sync" and not f.note]
    return []


def _held(copies: list[Copy]) -> list[bytes]:
    return [ctypes.string_at(copy.address, copy.high - copy.low) for copy in copies]


def told_by_compiler(kernel: Any, unit: str) -> list[Finding]:
    """The compiler's warnings of local variables without a value, as findings."""
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "unit.cpp")
        text.write_text(unit, encoding="utf-8", errors="surrogateescape")
        flags = ["-std=c++17", "-O1", f"-I{INCLUDE}", "-Wuninitialized", "-Wmaybe-uninitialized"]
        result = compiler.run(*flags, "-S", str(text), "-o", os.devnull)
    found = []
    for match in _WARNING.finditer(result.stderr):
        file, line = match["file"], int(match["line"])
        if not kernel.in_source(file):
            continue
        said = f"{kernel.signature.name}: {compiler.name} says: {match['text']}"
        quoted = f"  {kernel.quoted(file, line)}"
        message = "\n".join([said, quoted, f"Usual cause: {CAUSES['uninitialized']}."])
        line_text = kernel.line_text(file, line)
        found.append(Finding("uninitialized", message, file, line, line_text))
    return found
