"""What a kernel's main loop must keep to in machine code, as the kernel's file states it.

    // main loop of matmul<float> (GEMM_TILE=128): at least 0.85 FFMA, at least 12 bytes a load
    // main loop of fused_forward (POOL=2): at most 70 instructions
    // main loop of matmul: at most 0 divisions

A bound is `at least` or `at most`, a number and what is bounded:

    FFMA, HMMA, LDS, ...   the share of instructions of this kind among those issued, 0 to 1
    instructions           those that a pass of the main loop issues
    bytes a load           what a load from global memory brings to a thread, on average
    divisions              of integers, in a pass

The statement holds for instances of the kernel that have the template arguments, T for any, and all
the macros in parentheses; of several that fit an instance the first one.  Main loop and pass are
those of machine_code/main_loop.py, for sm_90.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from tinygraph.base.errors import ArgumentError
from tinygraph.cuda.reading.instances import Instance, macros_of
from tinygraph.cuda.reading.operation_counts import fits
from tinygraph.cuda.reading.signature import split_name
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import split_text, stated

_STATEMENT = re.compile(
    r"main loop of (?P<kernel>\w+)(?:<(?P<types>[^:]*)>)?\s*(?:\((?P<macros>[^)]*)\))?\s*:"
)
_BOUND = re.compile(r"at (?P<side>least|most) (?P<number>\d+(?:\.\d+)?) (?P<what>[\w ]+)")
_SIDES: dict[str, Callable[[float, float], bool]] = {"least": operator.ge, "most": operator.le}
MEASURES = ("instructions", "bytes a load", "divisions")


class Bound(NamedTuple):
    """One bound: "least" or "most", the number, and an opcode or one of `MEASURES`."""

    side: str
    number: float
    what: str

    def holds(self, found: float) -> bool:
        return _SIDES[self.side](found, self.number)

    def __str__(self) -> str:
        return f"at {self.side} {self.number:g} {self.what}"


def bounds(instance: Instance) -> tuple[Bound, ...]:
    """The bounds that an instance's file states for it.

    Raises
    ------
    ArgumentError
        For a statement that cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".cu") as file:
    ...     written = file.write("// main loop of dot (TILE=64): at least 0.5 FFMA")
    ...     file.flush()
    ...     [str(b) for b in bounds(Instance(Path(file.name), "dot<float>", {"TILE": "64"}))]
    ['at least 0.5 FFMA']
    """
    function, given = split_name(instance.name)
    for kernel, types, macros, found in _statements(Source.read(instance.path)):
        named = kernel == function and len(types) <= len(given) and all(map(fits, types, given))
        if named and dict(macros).items() <= instance.defines.items():
            return found
    return ()


class _Statement(NamedTuple):
    kernel: str
    types: tuple[str, ...]
    macros: tuple[tuple[str, str], ...]
    bounds: tuple[Bound, ...]


@lru_cache(maxsize=256)
def _statements(source: Source) -> tuple[_Statement, ...]:
    """The statements of a file, in their order."""
    found = []
    for line, match, text in stated(source.text, _STATEMENT, lambda text: text.endswith(",")):
        place = f"{source.name}:{line}"
        bounds = tuple(_bound(part, place) for part in split_text(text))
        if not bounds:
            raise _unreadable(place, "none")
        macros = tuple(macros_of(match["macros"] or "", place).items())
        types = tuple(split_text(match["types"] or ""))
        found.append(_Statement(match["kernel"], types, macros, bounds))
    return tuple(found)


def _bound(text: str, place: str) -> Bound:
    match = _BOUND.fullmatch(text)
    what = match["what"] if match else ""
    if not match or not (what in MEASURES or re.fullmatch(r"[A-Z][A-Z0-9]+", what)):
        raise _unreadable(place, repr(text))
    return Bound(match["side"], float(match["number"]), what)


def _unreadable(place: str, got: str) -> ArgumentError:
    expected = "bounds: at least or at most, a number, and an opcode, " + ", ".join(MEASURES)
    way_out = "// main loop of NAME (TILE=64): at least 0.85 FFMA, at most 0 divisions"
    return ArgumentError(place, "main loop", expected, got, way_out)
