"""CUDA C++ into C++: only declarations of shared memory are rewritten.

    __shared__ float tile[32][33], other[4];

becomes, on the same line, a type, a slot that names the array, and a reference to its memory:

    typedef float tg_t0[32][33], tg_t1[4];
    static const tg_shared_slot tg_s0 = {"tile", ...}; tg_t0 &tile = tg_shared<tg_t0>(tg_s0); ...

Such a reference lives in a function.  Shared memory that is declared outside of functions gets one
at the start of each function that names it; a lambda that captures by value ([=]) is told to take
shared variables by reference, as static variables are never copied.

All other keywords are macros of include/cuda_emulator.h.  Line numbers stay as they are.  The host
code of a file (reading/host_code.py) is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path

from tinygraph.base.errors import KernelCompileError
from tinygraph.cuda.reading.host_code import has_host_code, without_host_code
from tinygraph.cuda.reading.source import Source
from tinygraph.cuda.reading.tokens import Token, closing, joined

_LINE = re.compile(r'#line (\d+) "(.*)"')  # as Source.tokens holds it
_WORD = re.compile(r"[A-Za-z_]\w*")
_INCLUDE = Path(__file__).resolve().parent / "include"
_OF_C = {"stdint.h", "stddef.h", "limits.h", "float.h"}
_QUALIFIERS = {"__shared__", "extern", "static"}
_ATTRIBUTES = {"__align__", "alignas", "__attribute__"}


def translate(source: Source) -> Translation:
    """Translate a source with its local include files into one text.

    Raises
    ------
    KernelCompileError
        A declaration of shared memory that cannot be read.

    >>> text = translate(Source("__global__ void k() { __shared__ float s[4]; }")).text
    >>> text.startswith('#line 1 "<source>"\\n__global__ void k() { typedef float tg_t0[4]; static')
    True
    """
    translation = Translation()
    text = source.tokens
    if has_host_code(text):
        text = without_host_code(text, _headers())
    translation.read(text)
    return translation


@cache
def _headers() -> frozenset[str]:
    """The headers that a kernel may include."""
    folders = (_INCLUDE, _INCLUDE / "freestanding")
    return frozenset(path.name for folder in folders for path in folder.iterdir()) | _OF_C


@dataclass
class _Function:
    """The function whose body is being translated."""

    depth: int  # of its braces
    start: int  # of its body in the output
    header: set[str]  # words of its declaration: a parameter hides a shared variable
    words: set[str] = field(default_factory=set)


class Translation:
    """What the compiler gets, and what the checker wants to know about the source.

    Attributes
    ----------
    constants : set of str
        Names of `__constant__` variables.
    words : set of str
        All identifiers of the source.
    """

    def __init__(self) -> None:
        self.out: list[str] = []
        self.constants: set[str] = set()
        self.words: set[str] = set()
        self.slots = 0
        self.place = "", 1  # file and line
        self.file_level: dict[str, str] = {}  # shared variables outside of functions: references
        self.macro_words: set[str] = set()
        self.scopes: list[list[str]] = []  # for each open brace: shared variables declared there
        self.namespaces: list[bool] = []  # for each open brace: does it belong to a namespace?
        self.function: _Function | None = None

    @property
    def text(self) -> str:
        return "".join(self.out)

    def read(self, text: list[Token]) -> None:
        """Translate statement by statement."""
        statement: list[Token] = []
        for token in text:
            if token.kind == "directive":
                self._end(statement, "")
                self.out.append(token.text)
                self.macro_words |= set(_WORD.findall(token.text))
                match = _LINE.fullmatch(token.text)
                if match:
                    self.place = match[2], int(match[1]) - 1
            else:
                statement.append(token)
                mark = token.text
                if mark == ";" and not _inside_struct(statement):
                    self._end(statement, ";")
                elif mark == "{" and not _declares_shared(statement):
                    header = list(statement)
                    self.namespaces.append(_opens_namespace(header))
                    self._end(statement, "{")
                    self._open(header)
                elif mark == "}" and not _declares_shared(statement):
                    self._end(statement, "}")
                    self._close()
            file, line = self.place
            self.place = file, line + token.text.count("\n")
        self._end(statement, "")

    def _open(self, header: list[Token]) -> None:
        """A brace has been opened, after these tokens."""
        self.scopes.append([])
        if self.file_level and not self.function and _opens_function(header):
            self.function = _Function(len(self.scopes), len(self.out), _words(header))

    def _close(self) -> None:
        """A brace has been closed: at the end of a function its references are put in."""
        if self.scopes:
            self.scopes.pop()
            self.namespaces.pop()
        function = self.function
        if function is None or len(self.scopes) >= function.depth:
            return
        references = [self.file_level[name] for name in self._named_by(function)]
        self.out.insert(function.start, "".join(references))
        self.function = None

    def _named_by(self, function: _Function) -> list[str]:
        """The shared variables of the file that a function uses."""
        used = (function.words | self.macro_words) - function.header
        return [name for name in self.file_level if name in used]

    def _capture(self, statement: list[Token]) -> None:
        """Let lambdas with [=] take shared variables by reference."""
        places = [i for i, token in enumerate(statement) if token.is_code]
        for first, second in pairwise(places):
            if statement[first].text != "[" or statement[second].text != "=":
                continue
            names = {name for scope in self.scopes for name in scope}
            if self.function:
                self.function.words |= _words(statement)
                names |= set(self._named_by(self.function))
            captured = "".join(["=", *(f", &{name}" for name in sorted(names))])
            statement[second] = Token("mark", captured)

    def _end(self, statement: list[Token], mark: str) -> None:
        """Write out a statement, rewritten if it declares shared memory."""
        words = _words(statement)
        self.words |= words
        if self.function:
            self.function.words |= words
        if "__constant__" in words and mark != "}":
            declared = _declared(_significant(statement))
            self.constants |= {name for name, _ in declared}
        if "__shared__" in words and mark == ";":
            self.out.append(self._shared(statement, all(self.namespaces)))
        else:
            self._capture(statement)
            self.out.extend(token.text for token in statement)
        statement.clear()

    def _shared(self, statement: list[Token], at_file_level: bool) -> str:
        # What stands before on the same line (a label, blank space), and the lines that are taken.
        lead = "".join([t.text for t in takewhile(lambda t: not t.is_code, statement)])
        newlines = "\n" * (sum(t.text.count("\n") for t in statement) - lead.count("\n"))
        parts = _significant(statement)[:-1]
        extern = any(token.text == "extern" for token in parts)
        parts = _without_qualifiers(parts)
        declared = _declared([*parts, Token("mark", ";")])
        if not declared:
            shown = " ".join(token.text for token in parts)
            file, line = self.place
            raise KernelCompileError(
                f"{file}:{line}: __shared__ {shown}: expected a declaration like "
                "`__shared__ float tile[32][33];`"
            )
        types, after = [token.text for token in parts], []
        for variable, position in declared:
            number = self.slots
            self.slots += 1
            types[position] = f"tg_t{number}"
            slot, reference = _memory(variable, number, extern, at_file_level)
            after.append(slot)
            if at_file_level and not extern:
                self.file_level[variable] = reference
                continue
            after.append(reference)
            if self.scopes and not extern:
                self.scopes[-1].append(variable)
        if extern:
            types = _with_length(types)
        return f"{lead}typedef {joined(types)}; {' '.join(after)}{newlines}"


def _memory(variable: str, number: int, extern: bool, at_file_level: bool) -> tuple[str, str]:
    """The slot of one shared variable, and the reference to it."""
    kind, slot = f"tg_t{number}", f"tg_s{number}"
    size = "0, 1" if extern else f"sizeof({kind}), alignof({kind})"
    element = f"sizeof(typename tg_element<{kind}>::type)"
    text = (
        f'static const tg_shared_slot {slot} = {{"{variable}", {size}, {element}, '
        "__FILE__, __LINE__};"
    )
    row = f"typename tg_row<{kind}>::type"
    if extern and at_file_level:
        return text, f"static const tg_dynamic_array<{row}, &{slot}> {variable};"
    if extern:
        return text, f"{row} *{variable} = ({row} *)tg_dynamic_memory(&{slot});"
    return text, f"{kind} &{variable} = tg_shared<{kind}>({slot});"


def _words(tokens: list[Token]) -> set[str]:
    return {token.text for token in tokens if token.kind == "word"}


def _significant(tokens: list[Token]) -> list[Token]:
    return [token for token in tokens if token.is_code]


def _declares_shared(statement: list[Token]) -> bool:
    return any(token.text == "__shared__" for token in statement)


def _inside_struct(statement: list[Token]) -> bool:
    """Whether a semicolon ends a member of `__shared__ struct { ... } s;`, not the statement."""
    if not _declares_shared(statement):
        return False
    texts = [token.text for token in statement]
    return texts.count("{") > texts.count("}")


def _opens_namespace(statement: list[Token]) -> bool:
    """Whether the brace at the end of a statement belongs to a namespace or to extern "C"."""
    tokens = [token.text for token in _significant(statement)]
    return "namespace" in tokens or (tokens[:1] == ["extern"] and len(tokens) == 3)


def _opens_function(statement: list[Token]) -> bool:
    """Whether the brace at the end of a statement begins the body of a function."""
    tokens = [token.text for token in _significant(statement)]
    closing = len(tokens) - 1 - tokens[::-1].index(")") if ")" in tokens else 0
    return closing > 0 and not {"struct", "class", "union", "enum"} & set(tokens[closing:])


def _without_qualifiers(tokens: list[Token]) -> list[Token]:
    """A declaration without storage classes and alignments; `volatile` belongs to its type."""
    kept, at, texts = [], 0, [token.text for token in tokens]
    while at < len(tokens):
        if texts[at] in _ATTRIBUTES and at + 1 < len(tokens):
            at = closing(texts, at + 1)
        elif texts[at] not in _QUALIFIERS:
            kept.append(tokens[at])
        at += 1
    return kept


def _declared(tokens: list[Token]) -> list[tuple[str, int]]:
    """The variables of a declaration with their positions: of `float a[2], b` a and b."""
    found: list[tuple[str, int]] = []
    last: int | None = None  # the word that a `[`, a comma or the end makes the variable
    depth = angle = 0
    named = False
    for position, token in enumerate(tokens):
        text = token.text
        if text in ("[", ",", ";", "=") and depth == 0 and angle == 0:
            if last is not None and not named:
                found.append((tokens[last].text, last))
                named = True
            if text == "=":
                break
            if text == ",":
                last, named = None, False
        if text in "([{" and len(text) == 1:
            depth += 1
        elif text in ")]}" and len(text) == 1:
            depth -= 1
        elif depth == 0 and text == "<":
            angle += 1
        elif depth == 0 and text == ">" and angle:
            angle -= 1
        elif token.kind == "word" and depth == 0 and angle == 0:
            last = position
    first = tokens[0].text if tokens else ""
    return found if len(found) and not (len(found) == 1 and found[0][0] == first) else []


def _with_length(types: list[str]) -> list[str]:
    """`float rows[]` has no size as a type: the first, empty dimension becomes 1."""
    for at in range(len(types) - 1):
        if types[at] == "[" and types[at + 1] == "]":
            return [*types[: at + 1], "1", *types[at + 1 :]]
    return types
