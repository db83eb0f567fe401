"""The table of the page "Writing ONNX": which operators each op becomes, read from the exporters.

Sphinx calls `write()` before it reads the pages.  The operators of an exporter are the words in its
code, and in what it calls of its room, that ONNX has operators for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import onnx

import tinygraph as tg
from tinygraph.interop.onnx import exporters
from tinygraph.interop.onnx.exporters.arithmetic import COMPARED, JOINED
from tinygraph.interop.onnx.exporters.elementwise import SAME
from tinygraph.interop.onnx.exporters.reductions import REDUCED
from tinygraph.interop.onnx.table import EXPORTERS, WITHOUT_ONNX

PAGE = Path(__file__).parent / "reference" / "generated" / "onnx_table.md"
ROOM = exporters.__name__
SHARED = (COMPARED, JOINED, REDUCED)  # tables of exporters that several ops share


@cache
def operators(op: type[tg.Op]) -> list[str]:
    """The operators that an op may become, in the order of the code."""
    if op in SAME:
        return [SAME[op]]
    kinds = next((table[op] for table in SHARED if op in table), ())
    own = [kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) if kind]
    return list(dict.fromkeys([*own, *_in_code(EXPORTERS[op], set())]))


def _in_code(function: Callable[..., Any], seen: set[Any]) -> list[str]:
    seen.add(function)
    found = []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value[:1].isupper() and onnx.defs.has(node.value):
                found.append(node.value)
        elif isinstance(node, ast.Attribute) and node.attr in ("cast", "as_dtype"):
            found.append("Cast")
        elif isinstance(node, ast.Name):
            called = function.__globals__.get(node.id)
            if isinstance(called, dict) and called not in SHARED:
                found += [kind for kind in called.values() if isinstance(kind, str)]
            ours = getattr(called, "__module__", "").startswith(ROOM)
            if inspect.isfunction(called) and ours and called not in seen:
                found += _in_code(called, seen)
    return found


def table() -> str:
    """A row for each op of the package, and one for each that ONNX cannot have."""
    ours = [op for op in EXPORTERS if op.__module__.startswith("tinygraph.ops.")]
    found: dict[str, dict[str, None]] = {}
    for op in ours:  # some of a name are one op in several bodies
        found.setdefault(op.name, {}).update(dict.fromkeys(operators(op)))
    rows = {name: ", ".join(f"`{kind}`" for kind in kinds) for name, kinds in found.items()}
    rows |= {op.name: f"none: {reason}" for op, reason in WITHOUT_ONNX.items()}
    lines = ["| op | operators of ONNX |", "|---|---|"]
    lines += [f"| `{name}` | {kinds} |" for name, kinds in sorted(rows.items())]
    return "\n".join([*lines, ""])


def write(page: Path = PAGE) -> Path:
    """Write the table; one that is up to date keeps its date."""
    page.parent.mkdir(exist_ok=True)
    text = table()
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write())
