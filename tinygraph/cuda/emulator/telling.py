"""What the checker has found, in words: kind, place, thread, element, and the usual cause."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tinygraph.cuda.arguments import Argument
from tinygraph.cuda.emulator.books import Found
from tinygraph.cuda.emulator.findings import CAUSES, Finding
from tinygraph.cuda.emulator.lines import Lines, is_of_the_emulator, lines_of
from tinygraph.cuda.emulator.native import NativeKernel

_KINDS = [
    "",
    "barrier-divergence",
    "warp-sync",
    "deadlock",
    "race",
    "out-of-bounds",
    "uninitialized",
    "unwritten-output",
    "misaligned",
    "read-only-write",
    "timeout",
    "overflow",
    "arithmetic",
]

CHECKED_WAYS_OUT = {  # by the kind of failure: the checker was on, and has not seen it come
    1: "see that line: code and constants of the kernel cannot be written, and what a library does "
    "the checker does not see",
    6: "let all lanes of a mask reach the same call",
}
_NOTE = 64  # in runtime/runtime.h: beside a kind
_SINCE_VOLTA = (
    "A note, no mistake: since Volta (compute capability 7.0) threads that have left the kernel do "
    "not count; an older GPU may wait for them for ever."
)


class TellingKernel(NativeKernel):
    """A kernel of which findings are told: their places are program counters of its library."""

    @cached_property
    def lines(self) -> Lines:
        return lines_of(self.path)

    def is_same_barrier(self, raw: Found) -> bool:
        """Whether the compiler has copied one barrier into several branches: no divergence."""
        if not raw.other.line:
            return False
        mine = [self.place_at(pc) for pc in raw.path if pc]
        return mine == [self.place_at(pc) for pc in raw.other_path if pc]

    def told(self, raw: Found, kind: str, arguments: Sequence[Argument]) -> Finding:
        """What the run time has noted, as a finding."""
        file, line = self.place_of(raw.place)
        other = self.place_of(raw.other)
        if kind in ("timeout", "deadlock") and not self.in_source(file):
            # It was stopped inside the run time or a header: the last access, or the last call.
            calls = [self.place_at(pc) or ("", 0) for pc in raw.path if pc]
            file, line = next((p for p in (other, *calls) if self.in_source(p[0])), ("", 0))
            other = "", 0
        array = raw.array.decode() if raw.has_index else None
        index = int(raw.index) if raw.has_index else None
        somebody = line or kind in ("timeout", "deadlock")
        block, thread = (tuple(raw.block), tuple(raw.thread)) if somebody else (None, None)
        who = f"block {block} thread {thread}" if somebody else ""
        lead = (self.signature.name, who, self._element_text(array, index, arguments))
        what = raw.text.decode(errors="replace") + _others(raw.others, raw.uncounted)
        same_value = kind == "race" and 0 < raw.seen == raw.alike
        what += "; both write the same value" if same_value else ""
        message = [f"{', '.join(filter(None, lead))}: {what}"]
        if line:
            message.append(f"  {self.quoted(file, line)}")
        if all(other) and other != (file, line):
            message.append(f"  and {self.quoted(*other)}")
        elif all(other) and kind == "race":
            message.append("  (both threads at this line)")
        if caller := self._caller(raw, file, line):
            message.append(f"  called from {caller}")
        is_note = bool(raw.kind & _NOTE)
        message.append(_SINCE_VOLTA if is_note else f"Usual cause: {CAUSES[kind]}.")
        text = self.line_text(file, line) if line else ""
        return Finding(
            kind,
            "\n".join(message),
            file,
            line or None,
            text,
            array,
            index,
            block,
            thread,
            other[0] if all(other) else "",
            other[1] if all(other) else None,
            tuple(raw.other_block) if raw.has_other else None,
            tuple(raw.other_thread) if raw.has_other else None,
            raw.event if self.build == "traced" else None,
            raw.others,
            is_note,
            same_value,
        )

    def _element_text(
        self, array: str | None, index: int | None, arguments: Sequence[Argument]
    ) -> str:
        """`x[17]`, for an array of several axes also the index on each of them."""
        if array is None or index is None:
            return ""
        shape = next((a.value.shape for a in arguments if a.parameter.name == array), ())
        if len(shape) > 1 and 0 <= index < np.prod(shape):
            axes = ", ".join(str(int(i)) for i in np.unravel_index(index, shape))
            return f"{array}[{index}] (element [{axes}])"
        return f"{array}[{index}]"

    def _caller(self, raw: Found, file: str, line: int) -> str:
        """The line that called the helper in which something was found."""
        for pc in raw.path:
            place = self.place_at(pc) if pc else None
            if not place or not self.in_source(place[0]) or place == (file, line):
                continue
            return self.quoted(*place)
        return ""

    def place_of(self, place: Any) -> tuple[str, int]:
        """File and line of a `Place`; no name and 0 where it is not known."""
        if place.line:
            return (place.file or b"").decode(errors="replace"), place.line
        return self.place_at(place.pc) or ("", 0) if place.pc else ("", 0)

    def in_source(self, file: str) -> bool:
        """Whether a file is the user's, not one of the emulator's headers."""
        return file not in ("", "entry") and not is_of_the_emulator(file)

    def place_at(self, pc: int) -> tuple[str, int] | None:
        """File and line of a program counter."""
        return self.lines.find(pc - self.base)


def kind_of(raw: Any) -> str:
    """The kind of what was found, in a word."""
    return _KINDS[raw.kind % _NOTE]


def _others(count: int, uncounted: bool) -> str:
    """How many other threads do the same."""
    if not count:
        return ""
    least = "at least " if uncounted else ""
    return f" (and {least}{count} other thread{'s'[: count > 1]})"
