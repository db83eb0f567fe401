"""Mutants of CUDA sources: each guard, barrier and shared array broken in turn.

    barrier   __syncthreads() or __syncwarp(...) deleted
    exit      `if (...) return;` (continue, break) deleted; of `A || B`, each operand in turn
    guard     an operand of the condition of an `if`, a `?:`, a loop, a bool variable or a bool
              function replaced by true; where there is an else, by false as well
    clamp     min(a, b), max(a, b) replaced by a, and by b
    shared    one dimension of a shared array smaller by one

The text is cut into tokens, without comments and directives; nothing depends on names or layout.
A mutant keeps every line where it was.  What stands between `#ifdef TINYGRAPH_EMULATOR` and its
`#endif` is left alone: there the emulator's body of an instruction stands beside the instruction
itself, which is not there to be run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

BARRIERS = {"__syncthreads", "__syncwarp"}
CLAMPS = {"min", "max"}
EXITS = {"return", "continue", "break"}
_BLANK = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"', re.DOTALL | re.MULTILINE
)
_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.'])*"
    r"|&&|\|\||::|->|\+\+|--|[-+*/%<>=!]=|\S"
)
_OPEN = {"(": ")", "[": "]", "{": "}"}
# What may stand before the condition of a `?:` (operators of lower precedence, and brackets).
_BEFORE_CONDITION = {*"([{,;=?:", "+=", "-=", "*=", "/=", "%=", "return"}
_CONSTANTS = {"true", "false", "0", "1"}


@dataclass(frozen=True)
class Edit:
    """The characters from `start` to `end` replaced; both texts have as many lines."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutant:
    """One change of one source.

    Attributes
    ----------
    file, function : str
    kind : str
        "barrier", "exit", "guard", "clamp" or "shared".
    ordinal : int
        Its number, from 1, among the mutants of that kind in the function.
    line : str
        The text of the line that is changed.
    change : str
        What is changed into what.
    source : str
        The whole mutated text.
    owner : str
        The struct that the function is a member of; "" for a free function.
    """

    file: str
    function: str
    kind: str
    ordinal: int
    line: str
    change: str
    source: str
    owner: str = ""

    @property
    def name(self) -> str:
        """File, function, kind and ordinal: unique among all mutants."""
        return f"{self.file}:{self.function}:{self.kind}-{self.ordinal}"

    def __str__(self) -> str:
        return f"{self.name}: {self.change}   in: {self.line}"


def mutants(file: str, text: str) -> list[Mutant]:
    """All mutants of a source, in the order of their places.

    >>> text = "__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 0; }"
    >>> [str(m) for m in mutants("k.cu", text)][0][:54]
    'k.cu:k:guard-1: threadIdx.x < n -> true   in: __global'
    """
    source = Tokens(text)
    counts: Counter[tuple[str, str]] = Counter()
    seen: set[frozenset[Edit]] = set()
    made = []
    for kind, edits, change in sorted(source.changes(), key=lambda found: found[1][0].start):
        if frozenset(edits) in seen:  # two arrays of one type are shrunk together
            continue
        seen.add(frozenset(edits))
        function = source.function_at(edits[0].start)
        counts[function, kind] += 1
        line = text.count("\n", 0, edits[0].start)
        made.append(
            Mutant(
                file,
                function,
                kind,
                counts[function, kind],
                text.splitlines()[line].strip(),
                change,
                _edited(text, edits),
                source.owner_at(edits[0].start),
            )
        )
    return made


def _edited(text: str, edits: tuple[Edit, ...]) -> str:
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        lines = text.count("\n", edit.start, edit.end) - edit.text.count("\n")
        text = text[: edit.start] + edit.text + "\n" * lines + text[edit.end :]
    return text


def called(text: str, function: str) -> set[str]:
    """The functions of a source that may run in a call of one of them, itself included."""
    source = Tokens(text)
    bodies: dict[str, set[str]] = {}  # overloads together
    for body in source.functions:
        bodies.setdefault(body.name, set()).update(source.texts[body.first : body.last])
    reached, waiting = set(), [function]
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in reached:
            reached.add(name)
            waiting.extend(bodies[name])
    return reached


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _without_wrappers(text: str) -> str:
    """Spaces in the place of what is written twice, for the emulator and for the GPU."""
    lines, depth = text.splitlines(keepends=True), 0
    for at, line in enumerate(lines):
        if depth or re.match(r"#\s*ifdef TINYGRAPH_EMULATOR\b", line):
            depth += bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif", line))
            lines[at] = re.sub(r"[^\n]", " ", line)
    return "".join(lines)


@dataclass(frozen=True)
class Function:
    """The tokens of a definition: `first` is the opening brace, `last` the closing one."""

    name: str
    first: int
    last: int
    returns_bool: bool


class Tokens:
    """The tokens of a source with their places, and what stands where."""

    def __init__(self, text: str) -> None:
        self.text = text
        blanked = _BLANK.sub(_spaces, _without_wrappers(text))
        matches = list(_TOKEN.finditer(blanked))
        self.texts = [m.group() for m in matches]
        self.starts = [m.start() for m in matches]
        self.ends = [m.end() for m in matches]

    @cached_property
    def partner(self) -> dict[int, int]:
        """For each bracket the place of its other half."""
        found, waiting = {}, []
        for at, text in enumerate(self.texts):
            if text in _OPEN:
                waiting.append(at)
            elif text in _OPEN.values() and waiting:
                begin = waiting.pop()
                found[begin], found[at] = at, begin
        return found

    @cached_property
    def functions(self) -> list[Function]:
        found, at = [], 0
        while at < len(self.texts):
            if self.texts[at] == "{" and self.texts[at - 1] in (")", "const"):
                close = at - 1 if self.texts[at - 1] == ")" else at - 2
                name = self.partner[close] - 1
                last = self.partner[at]
                found.append(Function(self.texts[name], at, last, self.texts[name - 1] == "bool"))
                at = last
            at += 1
        return found

    def function_at(self, place: int) -> str:
        """The function around a character; "" outside of all."""
        for function in self.functions:
            header = self.starts[function.first]
            if header <= place <= self.ends[function.last]:
                return function.name
        return ""

    @cached_property
    def structs(self) -> list[tuple[str, int, int]]:
        """Name, first and last character of each struct that is defined."""
        found = []
        for at, text in enumerate(self.texts[:-2]):
            if text == "struct" and self.texts[at + 2] in "{:":
                first = self.texts.index("{", at)
                last = self.partner[first]
                found.append((self.texts[at + 1], self.starts[first], self.ends[last]))
        return found

    def owner_at(self, place: int) -> str:
        """The innermost struct around a character; "" outside of all."""
        around = [name for name, first, last in self.structs if first <= place <= last]
        return around[-1] if around else ""

    def between(self, first: int, last: int) -> str:
        """The source of some tokens, on one line."""
        return re.sub(r"\s+", " ", self.text[self.starts[first] : self.ends[last - 1]])

    # ---- changes: (kind, edits, what is changed into what)

    def changes(self) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
        for function in self.functions:
            for at in range(function.first, function.last):
                text = self.texts[at]
                if text in BARRIERS:
                    yield self._replaced("barrier", at, self.partner[at + 1] + 1, "((void)0)")
                elif text in CLAMPS and self.texts[at + 1] == "(":
                    yield from self._clamp(at)
                elif text == "__shared__":
                    yield from self._shared(at)
                else:
                    yield from self._conditions(at, function.returns_bool)

    def _replaced(
        self, kind: str, first: int, last: int, text: str
    ) -> tuple[str, tuple[Edit, ...], str]:
        shown = "nothing" if text == "((void)0)" else text
        edit = Edit(self.starts[first], self.ends[last - 1], text)
        return kind, (edit,), f"{self.between(first, last)} -> {shown}"

    def _clamp(self, at: int) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
        first, last = at + 2, self.partner[at + 1]
        for begin, end in self._split(first, last, {","}):
            yield self._replaced("clamp", at, last + 1, f"({self.between(begin, end)})")

    def _split(self, first: int, last: int, at: set[str]) -> list[tuple[int, int]]:
        """Tokens first ... last - 1 cut at some signs outside of brackets."""
        parts, begin, place = [], first, first
        while place < last:
            if self.texts[place] in at:
                parts.append((begin, place))
                begin = place + 1
            place = self.partner[place] + 1 if self.texts[place] in _OPEN else place + 1
        return [*parts, (begin, last)]

    # ---- conditions

    def _conditions(
        self, at: int, returns_bool: bool
    ) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
        text = self.texts[at]
        if text == "if":
            first = at + 1 + (self.texts[at + 1] == "constexpr")
            last = self.partner[first]
            after = last + 2 if self.texts[last + 1] == "{" else last + 1
            if self.texts[after] in EXITS:
                yield from self._operands("exit", first + 1, last, "false")
            else:
                has_else = self.texts[self._statement_end(last + 1)] == "else"
                values = ("true", "false") if has_else else ("true",)
                yield from self._operands("guard", first + 1, last, *values)
        elif text == "while":
            yield from self._operands("guard", at + 2, self.partner[at + 1], "true")
        elif text == "for":
            parts = self._split(at + 2, self.partner[at + 1], {";"})
            if len(parts) == 3:
                yield from self._operands("guard", *parts[1], "true")
        elif text == "?":
            yield from self._operands("guard", self._condition_start(at), at, "true", "false")
        elif text == "bool" and self.texts[at + 2] == "=":
            yield from self._value(at + 3)
        elif text == "return" and returns_bool:
            yield from self._value(at + 1)

    def _value(self, first: int) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
        """The operands of a bool expression up to its semicolon; those of a `?:` come by itself."""
        last = self._split(first, self._end_of(first), {","})[0][1]
        if "?" not in self.texts[first:last]:
            yield from self._operands("guard", first, last, "true")

    def _operands(
        self, kind: str, first: int, last: int, *values: str
    ) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
        """Each operand of `&&` and `||` replaced by each of the values."""
        if first >= last:
            return
        if self.texts[first] == "(" and self.partner[first] == last - 1:
            yield from self._operands(kind, first + 1, last - 1, *values)
            return
        parts = self._split(first, last, {"&&", "||"})
        if len(parts) > 1:
            for part in parts:
                yield from self._operands(kind, *part, *values)
        elif self.between(first, last) not in _CONSTANTS:
            for value in values:
                yield self._replaced(kind, first, last, value)

    def _condition_start(self, at: int) -> int:
        """The first token of the condition before a `?`."""
        while self.texts[at - 1] not in _BEFORE_CONDITION:
            at -= 1
            if self.texts[at] in _OPEN.values():
                at = self.partner[at]
        return at

    def _end_of(self, at: int) -> int:
        """The semicolon that ends what begins here."""
        while self.texts[at] != ";":
            at = self.partner[at] + 1 if self.texts[at] in _OPEN else at + 1
        return at

    def _statement_end(self, at: int) -> int:
        """The token after a statement."""
        while self.texts[at] in ("if", "for", "while"):
            first = at + 1 + (self.texts[at + 1] == "constexpr")
            at = self.partner[first] + 1
        return self.partner[at] + 1 if self.texts[at] == "{" else self._end_of(at) + 1

    # ---- shared arrays

    def _shared(self, at: int) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
        """Each dimension of each array of one declaration, smaller by one.

        The outermost: the array keeps its type, but lies in memory of a row less, so that nothing
        that takes it must change.  An inner one: the type itself, here and wherever it is named.
        """
        first = at + 1
        while self.texts[first] in ("__align__", "alignas"):
            first = self.partner[first + 1] + 1
        parts = self._split(first, self._end_of(at), {","})
        name = next(i for i in range(*parts[0]) if self.texts[i + 1] in "[,;")
        element = self.between(first, name)
        lead = self.text[self.starts[at] : self.starts[first]]
        declared = [(name, parts[0][1]), *parts[1:]]
        for begin, end in declared:
            dims = [self.between(b + 1, e) for b, e in self._dims(begin + 1, end)]
            if not dims or "" in dims:
                continue  # no array, or dynamic: its size comes with the launch
            whole = "".join(f"[{d}]" for d in dims)
            short = f"[({dims[0]}) - 1]" + "".join(f"[{d}]" for d in dims[1:])
            array = self.texts[begin]
            others = [self.between(b, e) for b, e in declared if b != begin]
            rewritten = "".join(f"{lead}{element} {other}; " for other in others) + (
                f"{lead}{element} {array}_short{short}; {element} (&{array}){whole} = "
                f"*reinterpret_cast<{element} (*){whole}>(&{array}_short)"
            )
            edit = Edit(self.starts[at], self.ends[self._end_of(at) - 1], rewritten)
            yield "shared", (edit,), f"{array}{whole} -> {array}{short}"
            for axis in range(1, len(dims)):
                yield self._inner(begin, end, axis)

    def _dims(self, at: int, end: int) -> list[tuple[int, int]]:
        """The brackets behind a declared name, as (opening, closing)."""
        found = []
        while at < end and self.texts[at] == "[":
            found.append((at, self.partner[at]))
            at = self.partner[at] + 1
        return found

    def _inner(self, name: int, end: int, axis: int) -> tuple[str, tuple[Edit, ...], str]:
        """An inner dimension smaller by one; with it those of parameters that are references to
        arrays of the same dimensions, and of the shared arrays that are passed to them."""
        dims = self._dims(name + 1, end)
        pattern = self.texts[name + 1 : dims[-1][1] + 1]
        places = [
            at for at in range(len(self.texts)) if self.texts[at : at + len(pattern)] == pattern
        ]
        by_reference = [at for at in places if self.texts[at - 1] == ")"]
        taken = [at for at in places if at == name + 1 or by_reference]
        offset = dims[axis][0] - (name + 1)
        edits = []
        for at in sorted(taken, key=lambda at: at != name + 1):  # its own declaration first
            begin, last = at + offset, self.partner[at + offset]
            smaller = f"[({self.between(begin + 1, last)}) - 1]"
            edits.append(Edit(self.starts[begin], self.ends[last], smaller))
        shown = "".join(pattern)
        size = self.between(dims[axis][0] + 1, dims[axis][1])
        return "shared", tuple(edits), f"{shown} -> axis {axis} of {size} - 1"
